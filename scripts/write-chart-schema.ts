// Writes the settings into deploy/helm/headgate/values.schema.json, from the table of settings, or checks them with --check.
// The rest of the file is written by hand.

import { readFileSync } from 'node:fs';
import { settingsSchema } from './settings-schema.ts';
import { writeDocument } from './write-document.ts';

/** The chart makes them of the values `bgp`. */
const OF_BGP = ['announce', 'bgp', 'hosts'];
/** The chart sets them itself. */
const OF_CHART = ['inCluster', 'kubeconfig', 'leaseNamespace', 'vrrp', 'pairCredentials', ...OF_BGP];
const FILE = 'deploy/helm/headgate/values.schema.json';

const values = JSON.parse(readFileSync(new URL(`../${FILE}`, import.meta.url), 'utf8'));
const { $schema: _, ...settings } = JSON.parse(settingsSchema());
const { asn, peers, routerId, ...more } = settings.properties.bgp.properties;
const { nodes } = values.properties.bgp.properties;
Object.assign(values.properties.bgp.properties, {
  asn,
  peers,
  more: { type: 'object', additionalProperties: false, properties: more },
});
Object.assign(nodes.items.properties, { routerId, peers });
for (const name of OF_CHART) delete settings.properties[name];
values.properties.settings = {
  ...settings,
  title: 'Settings of the agents, without those that the chart makes',
};
writeDocument(FILE, `${JSON.stringify(values, undefined, 2)}\n`);
