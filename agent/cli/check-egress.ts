// What `headgate check` finds about egress, if a Service of the cluster asks for it: the right to read its Pods, and programs of the
// nodes that give packets of pods another source before they reach the host. Changes nothing.

import { isMapping } from '../base/validate.ts';
import { bad, type Finding, good } from '../host/finding.ts';
import type { ApiRequest, KubernetesApi } from '../kubernetes/api/kubernetes-api.ts';
import { isAllowed, podRights, rightRequest } from '../kubernetes/api/rights.ts';

interface Masquerader {
  readonly program: string;
  readonly path: string;
  /** The setting that ends it, if the object shows that it masquerades; '' if not. */
  readonly judge: (object: Readonly<Record<string, unknown>>) => string;
}

const CONFIG_MAPS = '/api/v1/namespaces/kube-system/configmaps';

/** docs/egress.md has the table. */
const MASQUERADERS: readonly Masquerader[] = [
  {
    program: 'Calico',
    path: '/apis/crd.projectcalico.org/v1/ippools',
    judge: ({ items }) => {
      const pools = Array.isArray(items) ? items.filter(isMapping) : [];
      const named = pools.find(
        ({ spec }) => isMapping(spec) && spec.natOutgoing === true && spec.disabled !== true,
      );
      const name = isMapping(named?.metadata) ? String(named.metadata.name) : '';
      return named === undefined ? '' : `set "natOutgoing" of the IPPool ${printable(name)} to false`;
    },
  },
  {
    program: 'Cilium',
    path: `${CONFIG_MAPS}/cilium-config`,
    judge: ({ data }) => {
      const of = isMapping(data) ? data : {};
      const isOff = of['enable-ipv4-masquerade'] === 'false' && of['enable-ipv6-masquerade'] !== 'true';
      const isNative = of['ipv4-native-routing-cidr'] === '0.0.0.0/0';
      return isOff || isNative
        ? ''
        : 'set "enable-ipv4-masquerade" (and that of IPv6) of cilium-config to "false"';
    },
  },
  {
    program: 'Flannel',
    path: '/apis/apps/v1/namespaces/kube-flannel/daemonsets/kube-flannel-ds',
    judge: (object) =>
      JSON.stringify(object).includes('"--ip-masq"') ? 'remove its argument --ip-masq' : '',
  },
  {
    program: 'ip-masq-agent',
    path: `${CONFIG_MAPS}/ip-masq-agent`,
    judge: (object) =>
      JSON.stringify(object).includes('0.0.0.0/0') ? '' : 'add 0.0.0.0/0 to its "nonMasqueradeCIDRs"',
  },
  {
    program: 'kube-proxy',
    path: `${CONFIG_MAPS}/kube-proxy`,
    judge: (object) =>
      /masqueradeAll: true/.test(JSON.stringify(object))
        ? 'set "masqueradeAll" of its configuration to false'
        : '',
  },
];

const WHAT = 'egress';

/** `namespaces`: those with Services that ask for it. */
export async function egressFindings(
  api: Pick<KubernetesApi, 'request'>,
  namespaces: readonly string[],
  timeoutMs: number,
): Promise<readonly Finding[]> {
  if (namespaces.length === 0) return [];
  const findings: Finding[] = [];
  for (const namespace of namespaces)
    for (const right of podRights(namespace)) {
      const { body } = await api.request(rightRequest(right, timeoutMs));
      if (isAllowed(body) !== false) continue;
      findings.push(
        bad(WHAT, `its account may not ${right.verb} Pods of namespace "${namespace}": apply deploy/egress/`),
      );
      break;
    }
  const hidden: string[] = [];
  for (const { program, path, judge } of MASQUERADERS) {
    const request: ApiRequest = { method: 'GET', path, timeoutMs };
    const { status, body } = await api.request(request);
    if (status === 403 || status === 401) hidden.push(program);
    if (status !== 200 || !isMapping(body)) continue;
    const remedy = judge(body);
    if (remedy !== '')
      findings.push(
        bad(
          WHAT,
          `${program} gives packets of pods the address of their node before they reach this host: ${remedy}`,
        ),
      );
  }
  if (hidden.length > 0)
    findings.push(
      good(
        WHAT,
        `its account may not see whether ${hidden.join(', ')} masquerade before this host: docs/egress.md`,
      ),
    );
  if (findings.length === 0)
    findings.push(good(WHAT, 'Pods can be read, and no program that it knows masquerades them'));
  return findings;
}

function printable(name: string): string {
  return /^[a-z0-9.-]{1,253}$/.test(name) ? name : '?';
}
