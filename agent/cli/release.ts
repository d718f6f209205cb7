// `headgate release`: with --all or --namespace an order to the running agent (release-here.ts); otherwise it removes from the
// cluster what agents have left in it, as after a trial, needs no agent, and refuses to work while one writes.

import { counted } from '../base/counted.ts';
import { HeadgateError } from '../base/errors.ts';
import { printable } from '../base/quote.ts';
import { LEASE } from '../kubernetes/writers/lease.ts';
import { type Released, release as releaseAll, writingAgent } from '../kubernetes/writers/release.ts';
import { apiClient } from '../sources/cluster-api.ts';
import { type Command, JSON_FLAG, NO_AGENT } from './command.ts';
import { print, usageError } from './command-line.ts';
import { isHere, releaseHere } from './release-here.ts';

export const release: Command = {
  name: 'release',
  purpose: 'serve a cluster or a namespace no longer, or remove what agents have left in a cluster',
  details: [
    'With --all, for the end of a cluster, or --namespace: the hosts withdraw the addresses, the provisioner is called for each, and finalizers, statuses and claims are removed if the API answers. What is left is said, and done by the same command again. Nothing of it is served again, whatever the cluster has, until --undo.',
    'Without both, for the end of a trial, or an agent that was lost: removes the finalizer from Services, so that kubectl delete returns, and addresses and conditions that agents have written, from Services, Gateways, routes and Ingresses. What other controllers have written stays. Refuses to work while an agent runs, which would write them again.',
  ],
  flags: {
    all: { placeholder: '', doc: 'everything that this host serves' },
    namespace: { placeholder: 'NS', doc: 'the objects of this namespace', completedBy: 'namespaces' },
    undo: { placeholder: '', doc: 'serve it again; without --namespace everything' },
    yes: { placeholder: '', doc: 'do not ask' },
    'dry-run': { placeholder: '', doc: 'say what it would do, and change nothing' },
    ...JSON_FLAG,
  },
  settings: 'all',
  exits: { 0: 'nothing is left', 1: 'something is left, or an agent runs that must not', 3: NO_AGENT },
  examples: [
    { line: 'headgate release --all', doc: 'the cluster is gone, or goes' },
    { line: 'headgate release --namespace shop --yes', doc: 'before the namespace is deleted' },
    {
      line: 'headgate release --kubeconfig headgate.kubeconfig --dry-run',
      doc: 'which objects have something of an agent',
    },
    { line: 'headgate release --kubeconfig headgate.kubeconfig', doc: 'after the last agent has stopped' },
  ],
  run: async (given) => {
    if (isHere(given)) return releaseHere(given);
    const { namespaces, leaseNamespace } = given.settings;
    const api = apiClient(given.settings);
    if (api === undefined)
      throw usageError('No cluster is named: give --kubeconfig FILE, or --in-cluster in a pod');
    try {
      const isDryRun = given.own['dry-run'] === true;
      const agent = isDryRun ? '' : await writingAgent(api, { namespace: leaseNamespace, name: LEASE });
      if (agent !== '')
        throw new HeadgateError(
          'API_REFUSED',
          `The agent ${agent} writes to this cluster: stop it, and all others; one that was killed counts as running for 15 seconds`,
        );
      const all: Released[] = [];
      for await (const one of releaseAll({ api, namespaces, isDryRun, now: () => new Date() })) all.push(one);
      const failed = all.filter(({ fault }) => fault !== '');
      for (const { object, fault } of failed) console.error(printable(`Cannot release ${object}: ${fault}`));
      const done = all.filter(({ fault }) => fault === '');
      const verb = isDryRun ? 'Would release' : 'Released';
      print(given, { released: done.map(({ object }) => object), failed }, [
        ...done.map(({ object }) => `${verb} ${object}`),
        `${verb} ${counted(done.length, 'object')}${failed.length === 0 ? '' : `, ${failed.length} not`}`,
      ]);
      return failed.length === 0 ? 0 : 1;
    } finally {
      api.close();
    }
  },
};
