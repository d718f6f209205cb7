// The operator's program that is told of addresses, where the claims are objects of a real API server: what it is told,
// when, again after a failure, and by whom.

import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { ADDRESS_API_VERSION as apiVersion } from '../../agent/kubernetes/object-names.ts';
import { requires } from '../support/basics/requirements.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath } from '../support/kube/kube-objects.ts';
import { VIP_PORT } from '../support/values/service-objects.ts';

const needs = kubeNeeds();
const test = requires(ava, { programs: [...(needs.programs ?? []), 'curl'], haproxy: true });

const POOLS = `/apis/${apiVersion}/addresspools`;
const CLAIMS = `/apis/${apiVersion}/addressclaims`;

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
  await deployDefinitions(kube);
});
test.after.always(() => kube?.stop());

interface Call {
  readonly action: string;
  readonly address: string;
  readonly pool: string;
  readonly service: string;
  readonly ports: readonly object[];
  readonly others: readonly string[];
  /** The claim as the API server had it when the program ran: an HTTP status, and the Service that has it. */
  readonly claim: string;
}

// Conformance: a network that must learn of addresses
test.serial(
  'The provisioner runs once the cluster has the claim, again until it succeeds, and at the release',
  async (t) => {
    const own = await Provisioned.create(t);
    const { host } = own;
    await own.fails(true);
    const agent = await own.start(t);
    await own.leads();
    await kube.must('POST', POOLS, pool('told', `${host.address(100)}/31`));
    await create('web');
    await host.until('a failure is a problem of the Service', async () =>
      (await host.why('default/web')).problems.some(({ reason }) => reason === 'ProvisionerFailed'),
    );
    const [address = ''] = (await host.why('default/web')).addresses;
    await own.fails(false);
    await host.until('the problem is gone', async () =>
      (await host.why('default/web')).problems.every(({ reason }) => reason !== 'ProvisionerFailed'),
    );
    const first = await own.calls();
    t.true(first.length > 1);
    for (const call of first) {
      t.like(call, {
        action: 'assign',
        address,
        pool: 'told',
        service: 'default/web',
        ports: [],
        others: [],
      });
      t.is(call.claim, '200 default/web');
    }
    t.is((await agent.metrics())('headgate_provisioner_pending'), 0);

    await kube.must('DELETE', servicePath('default', 'web'));
    await host.until(
      'the address is released',
      async () => (await own.calls()).length > first.length,
      60_000,
    );
    const [release, ...more] = (await own.calls()).slice(first.length);
    t.deepEqual(more, []);
    t.like(release, { action: 'release', address, pool: 'told', service: 'default/web' });
    // No other Service could get it before.
    t.is(release?.claim, '404 ');
    await kube.must('DELETE', `${POOLS}/told`);
  },
);

// Conformance: a network that must learn of addresses
test.serial(
  'The new leader runs the provisioner for each address in use; the other agent does not',
  async (t) => {
    const [one, other] = [await Provisioned.create(t), await Provisioned.create(t)];
    const first = await one.start(t);
    await one.leads();
    await kube.must('POST', POOLS, pool('kept', `${one.host.address(100)}/31`));
    await create('kept');
    await one.host.until('it is told', async () => (await one.calls()).length === 1);
    await other.start(t);
    await other.host.until(
      'the other one follows',
      async () => (await other.host.why('default/kept')).addresses.length === 1,
    );
    t.deepEqual(await other.calls(), []);
    await first.stop();
    await other.leads();
    await other.host.until('it tells', async () => (await other.calls()).length === 1);
    t.deepEqual(await other.calls(), await one.calls());
    t.is((await one.calls()).length, 1);
  },
);

/** A host with a program that writes down what it is told and what the claim is like then; it fails if it is told to. */
class Provisioned {
  readonly host: TestHost;

  private constructor(host: TestHost) {
    this.host = host;
  }

  static async create(t: ExecutionContext): Promise<Provisioned> {
    const flags = ['--kubeconfig', kube.kubeconfig, '--release-after', '2s'];
    const own = new Provisioned(await TestHost.create(t, { flags }));
    const ask = `curl -sk -H 'Authorization: Bearer ${kube.adminToken}' -w '\\n%{http_code}' ${kube.url}${CLAIMS}`;
    const script = `#!/bin/sh
read -r told
name=$(echo "$told" | sed -E 's/.*"address":"([^"]*)".*/\\1/; s/\\./-/g')
answer=$(${ask}/$name)
status=$(echo "$answer" | tail -n 1)
service=$(echo "$answer" | grep -o '"service": *"[^"]*"' | cut -d '"' -f 4)
echo "$told" | sed "s|}$|,\\"claim\\":\\"$status $service\\"}|" >>${own.#at('calls')}
[ ! -e ${own.#at('fails')} ] || exit 1
`;
    await writeFile(own.#at('program'), script, { mode: 0o755 });
    return own;
  }

  /** It gives the lead back, so that the next one need not wait for it. */
  async start(t: ExecutionContext): Promise<RunningAgent> {
    const agent = await this.host.start(['--provisioner', this.#at('program')]);
    t.teardown(async () => {
      if (!agent.hasExited) await agent.stop();
    });
    return agent;
  }

  leads(): Promise<void> {
    return this.host.until('it leads', async () => (await this.host.status()).addresses.leading, 40_000);
  }

  async calls(): Promise<readonly Call[]> {
    const text = await readFile(this.#at('calls'), 'utf8').catch(() => '');
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Call);
  }

  async fails(does: boolean): Promise<void> {
    await (does ? writeFile(this.#at('fails'), '') : rm(this.#at('fails')));
  }

  #at(name: string): string {
    return join(this.host.directory, name);
  }
}

const pool = (name: string, block: string) => ({
  apiVersion,
  kind: 'AddressPool',
  metadata: { name },
  spec: { blocks: [block] },
});

async function create(name: string): Promise<void> {
  const ports = [{ name: 'http', port: VIP_PORT, protocol: 'TCP' }];
  await kube.must('POST', servicePath('default'), {
    metadata: { name },
    spec: { type: 'LoadBalancer', ports },
  });
}
