"""Octavia's own driver as a child process: one order a line on standard input, one answer a line on standard output.

The first line has the settings: {"address", "port", "clientCertificate", "serverAuthority", "base", "certificates", "amphora"};
paths are files. In a pair it has also "peer": {"amphora", "vrrpAddress"}, the other amphora. Then {"call": "push", "loadBalancer": {...}}, {"call": "start" | "delete", ...} of the driver, or
{"call": "client", "method": "get_info", "arguments": [...]} of its REST client. The answer is {"seconds", "result"} or
{"seconds", "error", "kind"}. A listener has 1,000 connections unless it says more: Octavia's 50,000 need 125,000 descriptors.
"""

import json
import sys
import time
import warnings

warnings.filterwarnings("ignore")

from octavia.common import config  # noqa: E402  (registers the options)
from octavia.common import data_models as models  # noqa: E402
from octavia.common import constants  # noqa: E402
from oslo_config import cfg  # noqa: E402

CONF = cfg.CONF
ACTIVE = constants.ACTIVE
ONLINE = constants.ONLINE


def configure(order):
    CONF([], project="octavia", default_config_files=[])
    for group, values in {
        "haproxy_amphora": {
            "base_path": order["base"],
            "base_cert_dir": order["certificates"],
            "bind_port": order["port"],
            "client_cert": order["clientCertificate"],
            "server_ca": order["serverAuthority"],
            "connection_logging": order.get("connectionLogging", False),
            "connection_max_retries": 2,
            "connection_retry_interval": 1,
            "active_connection_max_retries": 2,
            "active_connection_retry_interval": 1,
        },
        # Listeners name the certificates ID.crt and ID.key of this folder.
        "certificates": {"cert_manager": "local_cert_manager", "storage_path": order.get("storage", order["base"])},
    }.items():
        for name, value in values.items():
            CONF.set_override(name, value, group=group)


def monitor_of(value, pool):
    if value is None:
        return None
    return models.HealthMonitor(
        id=value.get("id", pool.id + "-m"), pool_id=pool.id, pool=pool, type=value["type"],
        delay=value.get("delay", 5), timeout=value.get("timeout", 3),
        fall_threshold=value.get("fall", 3), rise_threshold=value.get("rise", 2),
        http_method=value.get("method", "GET"), url_path=value.get("path", "/"),
        expected_codes=value.get("codes", "200"), http_version=value.get("version"),
        domain_name=value.get("domain"), enabled=True,
        provisioning_status=ACTIVE, operating_status=ONLINE)


def pool_of(value):
    pool = models.Pool(
        id=value["id"], protocol=value.get("protocol", "HTTP"),
        lb_algorithm=value.get("algorithm", constants.LB_ALGORITHM_ROUND_ROBIN), enabled=value.get("enabled", True),
        provisioning_status=ACTIVE, operating_status=ONLINE, members=[], l7policies=[], listeners=[],
        tls_enabled=value.get("tls", False))
    pool.members = [
        models.Member(
            id=member["id"], pool_id=pool.id, pool=pool, ip_address=member["address"],
            protocol_port=member["port"], weight=member.get("weight", 1), backup=member.get("backup", False),
            enabled=member.get("enabled", True), monitor_address=member.get("monitorAddress"),
            monitor_port=member.get("monitorPort"), provisioning_status=ACTIVE, operating_status=ONLINE)
        for member in value.get("members", [])]
    pool.health_monitor = monitor_of(value.get("monitor"), pool)
    persistence = value.get("persistence")
    if persistence is not None:
        pool.session_persistence = models.SessionPersistence(
            pool_id=pool.id, pool=pool, type=persistence["type"], cookie_name=persistence.get("cookie"),
            persistence_timeout=persistence.get("timeout"), persistence_granularity=persistence.get("granularity"))
    return pool


def load_balancer_of(value, amphorae):
    balancer = models.LoadBalancer(
        id=value["id"], project_id="project", name="name", enabled=value.get("enabled", True),
        topology=value.get("topology", constants.TOPOLOGY_SINGLE), provisioning_status=ACTIVE,
        operating_status=ONLINE, amphorae=amphorae, listeners=[], pools=[], additional_vips=[])
    balancer.vip = models.Vip(load_balancer_id=balancer.id, ip_address=value["vip"])
    for each in value.get("listeners", []):
        pool = pool_of(each["pool"]) if each.get("pool") else None
        listener = models.Listener(
            id=each["id"], project_id="project", load_balancer_id=balancer.id, load_balancer=balancer,
            protocol=each.get("protocol", "HTTP"), protocol_port=each["port"],
            connection_limit=each.get("connectionLimit", 1000), enabled=each.get("enabled", True),
            provisioning_status=ACTIVE, operating_status=ONLINE, peer_port=1025, default_pool=pool,
            default_pool_id=pool.id if pool else None, pools=[pool] if pool else [], l7policies=[],
            sni_containers=[], insert_headers=each.get("insertHeaders", {}), allowed_cidrs=[],
            tls_certificate_id=each.get("certificate"))
        if pool is not None:
            pool.listeners = [listener]
            pool.load_balancer = balancer
            balancer.pools.append(pool)
        balancer.listeners.append(listener)
    return balancer


def main():
    order = json.loads(sys.stdin.readline())
    configure(order)
    from octavia.amphorae.drivers.haproxy import rest_api_driver

    driver = rest_api_driver.HaproxyAmphoraLoadBalancerDriver()
    amphora = models.Amphora(
        id=order.get("amphora", "amphora"), lb_network_ip=order["address"], vrrp_ip=order.get("vrrpAddress", "127.0.0.1"),
        status=constants.AMPHORA_ALLOCATED, role=constants.ROLE_STANDALONE)

    peer = order.get("peer")
    amphorae = [amphora] if peer is None else [amphora, models.Amphora(
        id=peer["amphora"], lb_network_ip="127.0.0.1", vrrp_ip=peer["vrrpAddress"],
        status=constants.AMPHORA_ALLOCATED, role=constants.ROLE_STANDALONE)]

    def carry_out(order):
        call = order["call"]
        if call == "client":
            client = driver.clients[order.get("version", "1.0")]
            amphora.api_version = order.get("version", "1.0")
            answer = getattr(client, order["method"])(amphora, *order.get("arguments", []))
            return answer if isinstance(answer, (dict, list, str, int, bool, type(None))) else str(answer)
        # Each call of a controller begins with an amphora whose version it does not know.
        amphora.api_version = None
        balancer = load_balancer_of(order["loadBalancer"], amphorae)
        if call == "push":
            return driver.update_amphora_listeners(balancer, amphora)
        if call == "start":
            return driver.start(balancer, amphora)
        if call == "delete":
            return driver.delete(balancer.listeners[0])
        raise ValueError(call)

    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        began = time.monotonic()
        try:
            answer = {"result": carry_out(json.loads(line))}
        except Exception as error:  # pylint: disable=broad-except
            answer = {"error": str(error), "kind": type(error).__name__}
        answer["seconds"] = time.monotonic() - began
        print(json.dumps(answer), flush=True)


main()
