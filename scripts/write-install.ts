// Writes what is made of deploy/kubernetes, or checks it with --check: install.yaml from the files that kustomization.yaml
// names; the same objects, the rights of deploy/tls, deploy/egress and deploy/policies and the rules of deploy/prometheus for the
// chart; and these rules for the Prometheus operator.
// After write-crds.ts, which writes some of these.

import { readFileSync } from 'node:fs';
import { isMapping } from '../agent/base/validate.ts';
import { parseYamlDocuments } from '../agent/base/yaml.ts';
import { writeDocument } from './write-document.ts';

/** What the Prometheus operator has around a file of rules. */
const RULE = `apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: headgate
  namespace: headgate-system
  labels:
    app.kubernetes.io/name: headgate
spec:
`;

const [kustomization] = parseYamlDocuments(read('kubernetes/kustomization.yaml')).documents;
const names = isMapping(kustomization?.value) ? (kustomization.value.resources as readonly string[]) : [];
const isDefinition = (name: string) => read(`kubernetes/${name}`).includes('kind: CustomResourceDefinition');

write('kubernetes/install.yaml', 'the files that kustomization.yaml names', ofKubernetes(names));
writeForChart('crds.yaml', 'deploy/kubernetes', ofKubernetes(names.filter(isDefinition)));
writeForChart('rbac.yaml', 'deploy/kubernetes/rbac.yaml', read('kubernetes/rbac.yaml'));
writeForChart('tls-all-namespaces.yaml', 'deploy/tls', read('tls/all-namespaces.yaml'));
writeForChart('tls-namespace.yaml', 'deploy/tls', read('tls/namespace.yaml'));
writeForChart('egress-all-namespaces.yaml', 'deploy/egress', read('egress/all-namespaces.yaml'));
writeForChart('egress-namespace.yaml', 'deploy/egress', read('egress/namespace.yaml'));
writeForChart('policies.yaml', 'deploy/policies', read('policies/rbac.yaml'));
const rules = read('prometheus/headgate.rules.yaml');
writeForChart('headgate.rules.yaml', 'deploy/prometheus', rules);
write(
  'prometheus/operator/prometheusrule.yaml',
  '../headgate.rules.yaml',
  `${RULE}${rules.replaceAll(/^(?=.)/gm, '  ')}`,
);

/** A chart reads only files of its own folder. */
function writeForChart(name: string, source: string, text: string): void {
  write(`helm/headgate/files/${name}`, source, text);
}

function write(path: string, source: string, text: string): void {
  writeDocument(
    `deploy/${path}`,
    `# Written by scripts/write-install.ts from ${source}: change it there.\n${text}`,
  );
}

function ofKubernetes(files: readonly string[]): string {
  return files.map((name) => read(`kubernetes/${name}`)).join('---\n');
}

function read(path: string): string {
  return readFileSync(new URL(`../deploy/${path}`, import.meta.url), 'utf8');
}
