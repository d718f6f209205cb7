import test from 'ava';
import { egressFindings } from '../../../agent/cli/check-egress.ts';

const CONFIG = '/api/v1/namespaces/kube-system/configmaps';
const POOLS = '/apis/crd.projectcalico.org/v1/ippools';

/** Answers of the API server by path; 404 for others. */
async function found(
  answers: Readonly<Record<string, readonly [status: number, body: unknown]>>,
  isAllowed = true,
): Promise<readonly string[]> {
  const findings = await egressFindings(
    {
      request: async ({ path }) => {
        const [status, body] = path.includes('selfsubjectaccessreviews')
          ? [201, { status: { allowed: isAllowed } }]
          : (answers[path] ?? [404, {}]);
        return { status, body, headers: {} } as never;
      },
    },
    ['shop'],
    1_000,
  );
  return findings.map(({ ok, detail }) => `${ok ? 'ok' : 'BAD'} ${detail}`);
}

const before = (program: string, remedy: string): string =>
  `BAD ${program} gives packets of pods the address of their node before they reach this host: ${remedy}`;

test('egressFindings() names each program that masquerades, with the setting that ends it', async (t) => {
  const pool = (natOutgoing: boolean) => ({
    items: [{ metadata: { name: 'default' }, spec: { natOutgoing } }],
  });
  t.deepEqual(
    await found({
      [POOLS]: [200, pool(true)],
      [`${CONFIG}/cilium-config`]: [200, { data: {} }],
      '/apis/apps/v1/namespaces/kube-flannel/daemonsets/kube-flannel-ds': [
        200,
        { spec: { template: { spec: { containers: [{ args: ['--ip-masq', '--kube-subnet-mgr'] }] } } } },
      ],
      [`${CONFIG}/ip-masq-agent`]: [200, { data: { config: 'nonMasqueradeCIDRs: [10.0.0.0/8]' } }],
      [`${CONFIG}/kube-proxy`]: [200, { data: { 'config.conf': 'iptables:\n  masqueradeAll: true\n' } }],
    }),
    [
      before('Calico', 'set "natOutgoing" of the IPPool default to false'),
      before('Cilium', 'set "enable-ipv4-masquerade" (and that of IPv6) of cilium-config to "false"'),
      before('Flannel', 'remove its argument --ip-masq'),
      before('ip-masq-agent', 'add 0.0.0.0/0 to its "nonMasqueradeCIDRs"'),
      before('kube-proxy', 'set "masqueradeAll" of its configuration to false'),
    ],
  );
  t.deepEqual(
    await found({
      [POOLS]: [200, pool(false)],
      [`${CONFIG}/cilium-config`]: [200, { data: { 'enable-ipv4-masquerade': 'false' } }],
      [`${CONFIG}/kube-proxy`]: [200, { data: { 'config.conf': 'masqueradeAll: false' } }],
    }),
    ['ok Pods can be read, and no program that it knows masquerades them'],
  );
});

test('egressFindings() says what the account may not read', async (t) => {
  t.deepEqual(await found({ [POOLS]: [403, {}], [`${CONFIG}/kube-proxy`]: [403, {}] }, false), [
    'BAD its account may not list Pods of namespace "shop": apply deploy/egress/',
    'ok its account may not see whether Calico, kube-proxy masquerade before this host: docs/egress.md',
  ]);
});

test('egressFindings() finds nothing if no Service asks for egress', async (t) => {
  t.deepEqual(await egressFindings({ request: () => Promise.reject(new Error('asked')) }, [], 1_000), []);
});
