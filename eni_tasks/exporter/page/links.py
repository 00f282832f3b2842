"""Where the status page leads: Flower's tasks and Grafana's dashboard, where their addresses are set."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, urlencode

DASHBOARD = "eni-tasks"  # the uid of helm/eni-tasks/files/dashboard.json


class Links(NamedTuple):
    """The addresses of Flower and Grafana, "" where none is set, and the cluster that this system serves."""

    flower: str
    grafana: str
    cluster: str

    def tasks(self, node: str = "") -> str:
        """Flower's list of tasks, searched for those of a node; "" if Flower's address is not set."""
        if not self.flower:
            return ""
        # Flower puts what follows `name=` into its search field, where further words may follow.
        search = f"?name={quote(f'eni. args:{node}')}" if node else ""
        return f"{self.flower}/tasks{search}"

    def dashboard(self, node: str = "") -> str:
        """The chart's dashboard in Grafana; "" if Grafana's address is not set."""
        if not self.grafana:
            return ""
        variables = {"var-cluster": self.cluster} | ({"var-node": node} if node else {})
        return f"{self.grafana}/d/{DASHBOARD}?{urlencode(variables)}"
