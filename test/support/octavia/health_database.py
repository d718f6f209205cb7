"""Octavia's health manager with its database in memory: what becomes of a heartbeat.

Argument: the key. The first line of standard input has the load balancer: {"amphora", "id", "listeners": [{"id", "protocol",
"enabled"}], "pools": [{"id", "members": [id]}]}; each further one a datagram in hexadecimal digits. The answer is
{"counted", "loadBalancer", "listeners", "pools", "members", "warnings"}: statuses by id, and whether the beat counts.
"""

import json
import logging
import sys
import time
import warnings

warnings.filterwarnings("ignore")

from octavia.common import config  # noqa: E402,F401  (registers the options)
from oslo_config import cfg  # noqa: E402

cfg.CONF([], project="octavia", default_config_files=[])
cfg.CONF.set_override("connection", "sqlite://", group="database")
cfg.CONF.set_override("heartbeat_key", sys.argv[1], group="health_manager")

from octavia.amphorae.backends.health_daemon import status_message  # noqa: E402
from octavia.amphorae.drivers.health import heartbeat_udp  # noqa: E402
from octavia.db import api, base_models, models  # noqa: E402

ACTIVE = {"provisioning_status": "ACTIVE", "operating_status": "ONLINE", "enabled": True}
UNSEEN = {**ACTIVE, "operating_status": "OFFLINE"}
noticed = []


class Notes(logging.Handler):
    def emit(self, record):
        noticed.append(record.getMessage())


def fill(session, balancer):
    session.add(models.LoadBalancer(id=balancer["id"], project_id="p", topology="SINGLE", **ACTIVE))
    session.add(models.Amphora(id=balancer["amphora"], load_balancer_id=balancer["id"], status="ALLOCATED", role="STANDALONE"))
    for pool in balancer.get("pools", []):
        session.add(models.Pool(id=pool["id"], load_balancer_id=balancer["id"], project_id="p", protocol="HTTP",
                                lb_algorithm="ROUND_ROBIN", **UNSEEN))
        for number, member in enumerate(pool["members"]):
            session.add(models.Member(id=member, pool_id=pool["id"], project_id="p", ip_address="192.0.2.1",
                                      protocol_port=number + 1, weight=1, backup=False, **UNSEEN))
    for number, listener in enumerate(balancer["listeners"]):
        session.add(models.Listener(
            id=listener["id"], load_balancer_id=balancer["id"], project_id="p", protocol=listener.get("protocol", "HTTP"),
            protocol_port=number + 1, **{**UNSEEN, "enabled": listener.get("enabled", True)}))
    session.flush()


def statuses(model):
    return {each.id: each.operating_status for each in api.get_session().query(model).all()}


base_models.BASE.metadata.create_all(api.get_engine())
# The tables of words, such as the statuses, are empty.
api.get_session().execute("PRAGMA foreign_keys = OFF")
balancer = json.loads(sys.stdin.readline())
fill(api.get_session(), balancer)
heartbeat_udp.LOG.logger.addHandler(Notes(logging.WARNING))
updater = heartbeat_udp.UpdateHealthDb()
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    noticed.clear()
    session = api.get_session()
    session.query(models.AmphoraHealth).delete()
    message = status_message.unwrap_envelope(bytes.fromhex(line.strip()), sys.argv[1])
    message["recv_time"] = time.time()
    updater.update_health(message, "127.0.0.1")
    print(json.dumps({
        "counted": api.get_session().query(models.AmphoraHealth).count() == 1,
        "loadBalancer": statuses(models.LoadBalancer)[balancer["id"]],
        "listeners": statuses(models.Listener),
        "pools": statuses(models.Pool),
        "members": statuses(models.Member),
        "warnings": list(noticed),
    }), flush=True)
