"""Octavia's own amphora-agent, for comparison: its REST application in gunicorn as `amphora-agent` starts it.

Only the init system is replaced: `service haproxy-ID start|reload|stop` does what the unit that the agent writes says.
The first line of standard input has the settings: {"base", "certificates", "port", "serverCertificate", "clientAuthority",
"namespace", "folder", "topology" (SINGLE without)}. The process ends when standard input does.
"""

import glob
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
import warnings

warnings.filterwarnings("ignore")

import gunicorn.app.base  # noqa: E402
from octavia.common import config  # noqa: E402,F401  (registers the options)
from octavia.common import constants  # noqa: E402
from oslo_config import cfg  # noqa: E402

CONF = cfg.CONF
order = json.loads(sys.stdin.readline())
folder = order["folder"]
CONF([], project="octavia", default_config_files=[])
for group, values in {
    "haproxy_amphora": {"base_path": order["base"], "base_cert_dir": order["certificates"]},
    "amphora_agent": {
        "agent_server_cert": order["serverCertificate"],
        "agent_server_ca": order["clientAuthority"],
        "agent_server_network_dir": folder,
    },
    "controller_worker": {"loadbalancer_topology": order.get("topology", constants.TOPOLOGY_SINGLE)},
}.items():
    for name, value in values.items():
        CONF.set_override(name, value, group=group)
constants.SYSTEMD_DIR = folder
constants.HAPROXY_USER_GROUP_CFG = os.path.join(folder, "group.conf")
with open(constants.HAPROXY_USER_GROUP_CFG, "w", encoding="utf-8") as file:
    file.write("global\n    group nogroup\n")

from octavia.amphorae.backends.agent.api_server import server, util  # noqa: E402

plain_check_output = subprocess.check_output


def unit_of(name):
    with open(os.path.join(folder, name + ".service"), encoding="utf-8") as unit:
        return unit.read()


def keepalived(action):
    """As the unit that the agent writes, which names a pid file of the machine for the process that speaks VRRP."""
    unit = unit_of("octavia-keepalived")
    if action == "start":
        command = re.search(r"ExecStart=(.*)", unit).group(1).split()
        plain_check_output(command + ["-r", os.path.join(folder, "vrrp.pid")], stderr=subprocess.STDOUT)
        return b""
    with open(re.search(r"PIDFile=(.*)", unit).group(1).strip(), encoding="utf-8") as pid:
        os.kill(int(pid.read()), signal.SIGHUP if action == "reload" else signal.SIGTERM)
    return b""


def service(name, action):
    if name == "octavia-keepalived":
        return keepalived(action)
    unit = unit_of(name)
    environment = dict(re.findall(r'"(\w+)=([^"]+)"', unit))
    pid_file = environment["PIDFILE"]

    def expand(command):
        return re.sub(r"\$(\w+)", lambda found: environment[found.group(1)], command).split()

    if action == "start":
        plain_check_output(expand(re.search(r"ExecStartPre=(.*)", unit).group(1)), stderr=subprocess.STDOUT)
        command = expand(re.search(r"ExecStart=(.*)", unit).group(1))
        # Without systemd's socket -Ws is -W, and the text's `daemon` would make a process that nobody waits for.
        command[command.index("-Ws")] = "-W"
        command.append("-db")
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 10
        while time.monotonic() < until and not glob.glob(os.path.join(CONF.haproxy_amphora.base_path, "*.sock")):
            time.sleep(0.005)
    elif action == "reload":
        plain_check_output(expand(re.search(r"ExecReload=(.* -c .*)", unit).group(1)), stderr=subprocess.STDOUT)
        with open(pid_file, encoding="utf-8") as pid:
            os.kill(int(pid.read().split()[0]), signal.SIGUSR2)
    elif action == "stop":
        with open(pid_file, encoding="utf-8") as pid:
            os.kill(int(pid.read().split()[0]), signal.SIGTERM)
    return b""


def check_output(command, **options):
    if command[0] == "/usr/sbin/service":
        return service(command[1], command[2])
    if command[0] == "systemctl":
        return b""
    return plain_check_output(command, **options)


subprocess.check_output = check_output
util.get_os_init_system = lambda: constants.INIT_SYSTEMD
util.install_netns_systemd_service = lambda: None
util.run_systemctl_command = lambda *words: None
util.send_vip_advertisements = lambda *words, **more: None
constants.AMPHORA_NAMESPACE = order["namespace"]


class Agent(gunicorn.app.base.BaseApplication):
    def load_config(self):
        for key, value in {
            "bind": "127.0.0.1:%d" % order["port"],
            "workers": 1,
            "timeout": CONF.amphora_agent.agent_request_read_timeout,
            "certfile": CONF.amphora_agent.agent_server_cert,
            "ca_certs": CONF.amphora_agent.agent_server_ca,
            "cert_reqs": ssl.CERT_REQUIRED,
            "ssl_version": ssl.PROTOCOL_TLSv1_2,
            "preload_app": True,
            "loglevel": "error",
        }.items():
            self.cfg.set(key, value)

    def load(self):
        return server.Server().app


def end_with_input():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


threading.Thread(target=end_with_input, daemon=True).start()
Agent().run()
