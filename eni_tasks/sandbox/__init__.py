"""The whole system on a laptop: an EC2 and a Kubernetes API, agents, and every process of ours."""
