// What Kubernetes asks of a load balancer: the addresses that it gives to Services.

import type { Section } from './row.ts';

export const ADDRESSES: Section = {
  title: 'Addresses',
  rows: [
    {
      field: 'claims are the truth, not statuses',
      rule: ['Claims are read first, then statuses; only then are new addresses given.'],
    },
    {
      field: 'an assigned address never moves',
      rule: ['Not because of another Service, a pool that changes, or a restart.'],
    },
    {
      field: 'a Service that is deleted and created again keeps its address',
      rule: ['The address is held for `releaseAfter`; reservations exist without any Service.'],
    },
    {
      field: 'the same input, the same choice',
      rule: ['The choice depends on the name of the Service, so that two allocators agree.'],
    },
    {
      field: 'a second claimant',
      rule: ['It waits, names the holder, and gets the address when the holder is gone.'],
    },
    {
      field: 'shared addresses',
      rule: [
        'By a key, on disjoint ports and protocols, within a namespace unless the pool says otherwise.',
        'Services that shared an address before a pool had it continue to share it without a key.',
      ],
    },
    {
      field: 'pools for some Services',
      rule: [
        'A pool may be for namespaces and labels only; the addresses that it has given stay when they change.',
      ],
    },
    {
      field: 'counts',
      rule: ['Free, used and held addresses of each pool and family are counted.'],
    },
    {
      field: 'a network that must learn of addresses',
      rule: [
        'The agent that writes runs the operator’s program for each address after its claim is stored, until the program succeeds, and again for its release.',
      ],
    },
    {
      field: 'a pool that is deleted and created again',
      rule: ['Its status names the pool by UID, so that a new pool of the same name gets its own.'],
    },
    {
      field: 'an address that another host has',
      rule: [
        'A host of a pair that does not hold an address asks the network for it, and reports another machine that answers; nothing is done against that machine.',
      ],
    },
  ],
};
