"""Prints texts of haproxy.cfg as Octavia's own renderer writes them, for the tests of pushed texts.

Reads a JSON list of specifications from standard input, and prints a JSON list of texts. A specification has
  base: the base path; vip, port: of the listener; listener: keywords of Octavia's sample listener;
  pool: fields of its pool to replace; members: a list of {id, ip_address, protocol_port, weight, enabled, backup}, or null
  for those of the sample; monitor: fields of the health monitor to replace; limit: connections; id, pool_id.
Without standard input (`--samples BASE`) it prints a text of each sample object, as {name, text}.
"""
import json
import logging
import sys

logging.disable(logging.CRITICAL)

from octavia.common.jinja.haproxy.combined_listeners import jinja_cfg  # noqa: E402
from octavia.tests.unit.common.sample_configs import sample_configs_combined as sample  # noqa: E402

AMPHORA = sample.sample_amphora_tuple()
VERSION = ["2", "6"]
CERTIFICATES = {"cont_id_1": sample.sample_tls_container_tuple(
    id="tls_container_id", certificate="certificate", private_key="key", primary_cn="example")}
SAMPLES = {
    "http": {}, "tcp": {"proto": "TCP"}, "https": {"proto": "HTTPS"}, "without members": {"sample_default_pool": 0},
    "terminated": {"proto": "TERMINATED_HTTPS", "tls": True},
    "routes": {"l7": True}, "routes by certificate": {"proto": "TERMINATED_HTTPS", "tls": True, "l7": True, "ssl_type_l7": True},
    "cookies": {"persistence_type": "HTTP_COOKIE"},
    "own cookies": {"persistence_type": "APP_COOKIE", "persistence_cookie": "JSESSIONID"},
    "source": {"persistence_type": "SOURCE_IP"},
    "pair": {"topology": "ACTIVE_STANDBY", "persistence_type": "SOURCE_IP"},
    "no monitor": {"monitor": False}, "ping": {"monitor_proto": "PING"}, "tls hello": {"monitor_proto": "TLS-HELLO"},
    "check of https": {"monitor_proto": "HTTPS"}, "check of http": {"proto": "TCP", "monitor_proto": "HTTP"},
    "check of a host": {"hm_host_http_check": True}, "own check": {"monitor_ip_port": True},
    "check of codes": {"monitor_expected_codes": "200,204,301"},
    "backup": {"backup_member": True}, "disabled": {"disabled_member": True},
    "proxy": {"be_proto": "PROXY"}, "proxy 2": {"be_proto": "PROXYV2", "proto": "TCP"},
    "headers": {"proto": "TERMINATED_HTTPS", "tls": True, "insert_headers": {
        name: "true" for name in ("X-Forwarded-For", "X-Forwarded-Port", "X-Forwarded-Proto", "X-SSL-Client-Verify",
                                  "X-SSL-Client-Has-Cert", "X-SSL-Client-DN", "X-SSL-Client-CN", "X-SSL-Issuer",
                                  "X-SSL-Client-SHA1", "X-SSL-Client-Not-Before", "X-SSL-Client-Not-After")}},
    "headers of http": {"insert_headers": {"X-Forwarded-For": "true", "X-Forwarded-Port": "true", "X-Forwarded-Proto": "true"}},
    "tls to members": {"tls_enabled": True, "backend_tls_ciphers": "ECDHE-RSA-AES128-GCM-SHA256"},
    "addresses": {"additional_vips": True}, "no limit": {"connection_limit": -1}, "inspected": {"timeout_tcp_inspect": 30000},
}


def render(templater, listener):
    certificates = CERTIFICATES if listener.protocol == "TERMINATED_HTTPS" else None
    return templater.build_config(AMPHORA, [listener], certificates, VERSION)


def specified(spec):
    base = spec["base"]
    templater = jinja_cfg.JinjaTemplater(base_amp_path=base, base_crt_dir=f"{base}/certs", connection_logging=False)
    listener = sample.sample_listener_tuple(**spec.get("listener", {}))
    pool = listener.default_pool._replace(**spec.get("pool", {}))
    if spec.get("members") is not None:
        members = [sample.sample_member_tuple(each["id"], each["ip_address"])._replace(**each)
                   for each in spec["members"]]
        pool = pool._replace(members=members)
    if spec.get("monitor") and pool.health_monitor:
        pool = pool._replace(health_monitor=pool.health_monitor._replace(**spec["monitor"]))
    load_balancer = listener.load_balancer
    if spec.get("vip"):
        load_balancer = load_balancer._replace(vip=sample.sample_vip_tuple(ip_address=spec["vip"]))
    has_pool = spec.get("listener", {}).get("include_pools", True)
    listener = listener._replace(default_pool=pool if has_pool else None, pools=[pool] if has_pool else [],
                                 load_balancer=load_balancer, connection_limit=spec.get("limit", 100))
    if spec.get("port"):
        listener = listener._replace(protocol_port=spec["port"])
    return render(templater, listener)


def samples(base):
    templater = jinja_cfg.JinjaTemplater(base_amp_path=base, base_crt_dir=f"{base}/certs")
    for name, keywords in SAMPLES.items():
        persistence = {} if "persistence_type" in keywords else {"persistence": False}
        yield {"name": name, "text": render(templater, sample.sample_listener_tuple(**{**persistence, **keywords}))}


if sys.argv[1:2] == ["--samples"]:
    print(json.dumps(list(samples(sys.argv[2]))))
else:
    print(json.dumps([specified(spec) for spec in json.load(sys.stdin)]))
