// Writes the settings into deploy/helm/headgate/values.schema.json, from the table of settings, or checks them with --check.
// The rest of the file is written by hand.

import { readFileSync } from 'node:fs';
import { settingsSchema } from './settings-schema.ts';
import { writeDocument } from './write-document.ts';

/** The chart sets them itself. */
const OF_CHART = ['inCluster', 'kubeconfig', 'leaseNamespace', 'vrrp', 'pairCredentials'];
const FILE = 'deploy/helm/headgate/values.schema.json';

const values = JSON.parse(readFileSync(new URL(`../${FILE}`, import.meta.url), 'utf8'));
const { $schema: _, ...settings } = JSON.parse(settingsSchema());
for (const name of OF_CHART) delete settings.properties[name];
values.properties.settings = {
  ...settings,
  title: 'Settings of the agents, without those that the chart makes',
};
writeDocument(FILE, `${JSON.stringify(values, undefined, 2)}\n`);
