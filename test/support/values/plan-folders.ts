// Folders of manifests for `headgate plan`, and what it prints of them.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { type PlanAnswer, planAnswer, planLines } from '../../../agent/cli/plan/answer.ts';
import { foldersCompared } from '../../../agent/cli/plan/compared-states.ts';
import { loggedRequest } from '../../../agent/report/difference/request-log.ts';
import { readSettings, type Settings } from '../../../agent/settings/settings.ts';

export const GATEWAY = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: headgate}
spec: {controllerName: headgate.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  gatewayClassName: headgate
  addresses: [{type: IPAddress, value: 192.0.2.10}]
  listeners: [{name: web, port: 80, protocol: HTTP}]
---
${service('web', ['10.1.1.1', '10.1.1.2'])}
---
${service('canary', ['10.1.1.3'])}
---
`;

export function service(name: string, addresses: readonly string[]): string {
  const endpoints = addresses.map((address) => `{addresses: [${address}]}`).join(', ');
  return `
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec: {ports: [{port: 80, name: http}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: shop, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [${endpoints}]`;
}

export function route(
  name: string,
  path: string,
  { annotations = '', backends = '{name: web, port: 80}', filters = '' } = {},
): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ${name}, namespace: shop, annotations: {${annotations}}}
spec:
  parentRefs: [{name: edge}]
  hostnames: [shop.example.org]
  rules:
  - matches: [{path: {type: PathPrefix, value: ${path}}}]
    filters: [${filters}]
    backendRefs: [${backends}]
---
`;
}

export class Folders {
  readonly root = mkdtempSync(join(tmpdir(), 'headgate-plan-test-'));
  readonly settings: Settings;

  constructor(t: ExecutionContext) {
    t.teardown(() => rmSync(this.root, { recursive: true, force: true }));
    const argv = ['--state-dir', join(this.root, 'state')];
    this.settings = readSettings({ argv, env: {}, readFile: (path) => readFileSync(path, 'utf8') });
  }

  write(path: string, text: string): string {
    const file = join(this.root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  }

  async compare(before: string, after: string, log: readonly string[] = []): Promise<PlanAnswer> {
    const places = [this.write('before/all.yaml', before), this.write('after/all.yaml', after)].map(dirname);
    const states = await foldersCompared(places.slice(0, 1), places.slice(1), this.settings);
    return planAnswer(states, this.settings, async (differences) => {
      for (const line of log) {
        const found = loggedRequest(line, 'shop.example.org');
        if (found !== undefined)
          differences.ask(found.request, found.place, () => found.request.path, found.client);
      }
      return { unread: 0, firstUnread: '' };
    });
  }
}

export function shown(answer: PlanAnswer): readonly string[] {
  return planLines(answer).map((line) =>
    typeof line === 'string'
      ? line
      : line.map((part) => (typeof part === 'string' ? part : part.text)).join(''),
  );
}
