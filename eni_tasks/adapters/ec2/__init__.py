"""EC2 through boto3: the only place that knows the vendor's requests, answers and error codes."""
