# Prints what the reference agent would set on an interface: {"vip": {...}} or {"network": {...}} as JSON on the standard input,
# with the fields of the REST API and the topology; lists of texts as JSON.

import ipaddress
import json
import sys

from octavia.amphorae.backends.agent.api_server import plug
from octavia.amphorae.backends.utils import interface_file

given = json.load(sys.stdin)
if 'vip' in given:
    asked = given['vip']
    plugger = plug.Plug(None)
    vips = plugger.render_vips([{'ip_address': asked['vip'], 'subnet_cidr': asked['subnet_cidr'],
                                 'gateway': asked['gateway'], 'host_routes': asked['host_routes']}]
                               + asked['additional_vips'])
    vrrp = plugger.build_vrrp_info(asked['vrrp_ip'], asked['subnet_cidr'], asked['gateway'], asked['host_routes'])
    made = interface_file.VIPInterfaceFile(name='eth1', mtu=asked['mtu'], vips=vips, vrrp_info=vrrp,
                                           fixed_ips=asked['fixed_ips'], topology=given['topology'])
else:
    made = interface_file.PortInterfaceFile(name='eth2', mtu=None, fixed_ips=given['network']['fixed_ips'])


def address(text):
    return ipaddress.ip_address(text).compressed


def route(each):
    words = [str(each.get('table', 254)), ipaddress.ip_network(each['dst']).compressed]
    words += ['via', address(each['gateway'])] if each.get('gateway') else []
    words += ['src', address(each['prefsrc'])] if each.get('prefsrc') else []
    return ' '.join(words)


json.dump({
    'addresses': [f"{address(each['address'])}/{each['prefixlen']}" for each in made.addresses
                  if each.get('octavia_owned', True)],
    'routes': [route(each) for each in made.routes],
    'rules': [f"{address(each['src'])} {each['table']}" for each in made.rules],
}, sys.stdout)
