# Prints the texts of keepalived that Octavia's own templates make: {"vrrp": {...}} or {"listener": {...}} as JSON on the
# standard input. Objects of the database are replaced by plain ones with the same fields.

import json
import sys
from types import SimpleNamespace

from octavia.amphorae.drivers.keepalived.jinja import jinja_cfg as vrrp_templates
from octavia.common.config import cfg
from octavia.common.jinja.lvs import jinja_cfg as lvs_templates


def plain(value):
    if isinstance(value, dict):
        return SimpleNamespace(**{key: plain(each) for key, each in value.items()})
    return [plain(each) for each in value] if isinstance(value, list) else value


def vrrp(given):
    cfg.CONF.set_override('base_path', given['base_path'], group='haproxy_amphora')
    group = {'vrrp_group_name': given['group'], 'vrrp_auth_type': 'PASS', 'vrrp_auth_pass': 'secret1',
             'advert_int': 1}
    amphorae = [dict(each, status='ALLOCATED') for each in given['amphorae']]
    balancer = plain({'vip': {'ip_address': given['vip']}, 'vrrp_group': group, 'amphorae': amphorae})
    own = amphorae[given['own']]
    subnet = {'cidr': given['cidr'], 'gateway_ip': given['gateway'], 'host_routes': []}
    network = {'vip_subnet': subnet, 'additional_vip_data': given.get('additional', [])}
    return vrrp_templates.KeepalivedJinjaTemplater().build_keepalived_config(balancer, plain(own), network)


def listener(given):
    cfg.CONF.set_override('base_path', '/var/lib/octavia', group='haproxy_amphora')
    lvs_templates.BASE_PATH = '/var/lib/octavia'
    return lvs_templates.LvsJinjaTemplater().build_config(plain(given))


asked = json.load(sys.stdin)
sys.stdout.write(vrrp(asked['vrrp']) if 'vrrp' in asked else listener(asked['listener']))
