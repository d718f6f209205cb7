// `headgate release`: removes from the cluster what agents have left in it, as after a trial. Needs no agent, and refuses to
// work while one writes.

import { counted } from '../base/counted.ts';
import { HeadgateError } from '../base/errors.ts';
import { printable } from '../base/quote.ts';
import { LEASE } from '../kubernetes/writers/lease.ts';
import { type Released, release as releaseAll, writingAgent } from '../kubernetes/writers/release.ts';
import { apiClient } from '../sources/cluster-api.ts';
import { type Command, JSON_FLAG } from './command.ts';
import { print, usageError } from './command-line.ts';

export const release: Command = {
  name: 'release',
  purpose: 'remove from the cluster what agents have left in it',
  details: [
    'For the end of a trial, or an agent that was lost: removes the finalizer from Services, so that kubectl delete returns, and addresses and conditions that agents have written, from Services, Gateways, routes and Ingresses. What other controllers have written stays. Refuses to work while an agent runs, which would write them again.',
  ],
  flags: {
    'dry-run': { placeholder: '', doc: 'say what it would do, and change nothing' },
    ...JSON_FLAG,
  },
  settings: 'all',
  exits: { 0: 'nothing of an agent is left', 1: 'an agent runs, or something could not be removed' },
  examples: [
    {
      line: 'headgate release --kubeconfig headgate.kubeconfig --dry-run',
      doc: 'which objects have something of an agent',
    },
    { line: 'headgate release --kubeconfig headgate.kubeconfig', doc: 'after the last agent has stopped' },
  ],
  run: async (given) => {
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
