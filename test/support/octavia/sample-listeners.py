# Prints the texts that Octavia's own tests render for listeners of UDP and SCTP, as a JSON list: the name of the test, the text,
# and what the reference agent reads in it. The ids of its samples are no UUIDs: each gets one.

import json
import re
import sys
import tempfile
import unittest
import uuid

from octavia.amphorae.backends.agent.api_server import util
from octavia.amphorae.backends.utils import keepalivedlvs_query
from octavia.common import config  # noqa: F401  (registers the options)
from octavia.common.jinja.lvs import jinja_cfg
from octavia.tests.unit.common.jinja.lvs import test_jinja_cfg

samples = []
name = ''
plain_render = jinja_cfg.LvsJinjaTemplater.render_loadbalancer_obj


def render(self, listener, **more):
    text = plain_render(self, listener, **more)
    written = re.sub(r'\bsample_\w+_id(_\w+)?\b', id_of, text)
    samples.append({'name': name, 'text': written, 'reference': reference(written)})
    return text


def reference(text):
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
        file.write(text)
        file.flush()
        util.keepalived_lvs_cfg_path = lambda _: file.name
        read = keepalivedlvs_query.get_lvs_listener_resource_ipports_nsname('')[0]
        # No heartbeat has these.
        return None if read is None else {kind: read[kind] for kind in read if kind not in ('Loadbalancer', 'HealthMonitor')}


def id_of(found):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, found.group(0)))


jinja_cfg.LvsJinjaTemplater.render_loadbalancer_obj = render
for case in unittest.defaultTestLoader.loadTestsFromModule(test_jinja_cfg):
    for test in case:
        name = test.id().rsplit('.', 1)[1]
        test.run()
json.dump(samples, sys.stdout)
