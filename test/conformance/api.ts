// What Kubernetes asks of a load balancer: how it follows the API, and what it withstands for months.

import type { Section } from './row.ts';

export const API: Section = {
  title: 'Watching the API',
  rows: [
    {
      field: '410 Gone, as an event or as a status',
      rule: ['A new list follows, and the difference is reported.'],
    },
    {
      field: 'a watch that the server ends',
      rule: ['It continues from the last version, those of bookmarks included.'],
    },
    {
      field: 'connection reset, 5xx, 429, 401, a list that fails',
      rule: [
        'Retried forever, with growing pauses; Retry-After is obeyed; a token is read again after a 401.',
      ],
    },
    {
      field: 'credentials',
      rule: [
        'Tokens, token files, certificates, a pod’s account, credential plugins, impersonation, proxies.',
        'The auth providers of a kubeconfig are refused by name: kubectl removed all but one of them in 1.26.',
        'A plugin that hangs is ended after 15 s with all that it has started, and started again.',
      ],
    },
    {
      field: 'several API servers',
      rule: ['They are tried in turn, and the one that answers is kept.'],
    },
    {
      field: 'a silent connection',
      rule: ['It is closed if expected bookmarks do not arrive.'],
    },
    {
      field: 'pages of a list',
      rule: ['A page has 500 objects; if one has expired, the list starts again.'],
    },
    {
      field: 'before all lists are complete',
      rule: ['Nothing is reported before Services, slices, nodes, pools and claims have all been listed.'],
    },
    {
      field: 'items of a list',
      rule: ['They have no kind and no apiVersion, which the list has for them; unknown fields do no harm.'],
    },
    {
      field: 'a list without most of the known objects',
      rule: [
        'It is not believed until a second list confirms it; an API server that has lost everything is detected.',
      ],
    },
    {
      field: 'no API server at the start',
      rule: ['The last good state is served from disk, and later the difference.'],
    },
    {
      field: 'an object that cannot be read',
      rule: ['It keeps its last good value and is a problem until it can be read.'],
    },
  ],
};

export const WHOLE: Section = {
  title: 'As a whole, for months',
  rows: [
    {
      field: 'churn',
      rule: ['Under 200 writes a second no update is lost, and memory does not grow.'],
    },
    {
      field: 'an API server that is away',
      rule: [
        'Traffic continues, also over a restart of the agent or of the host, and nothing is repeated afterwards.',
      ],
    },
    {
      field: 'two agents on one cluster',
      rule: [
        'They give the same addresses and render the same bytes; one writes, and the other one takes over.',
      ],
    },
    {
      field: 'the API server behind a VIP of this host',
      rule: ['Objects of a folder are served without any API server, so a folder can serve the API server.'],
    },
    {
      field: 'a part of the cluster',
      rule: ['Settings choose namespaces and a label selector of Services.'],
    },
    {
      field: 'a Service that is gone',
      rule: ['Nothing of it remains, also if only a list that broke off had shown it.'],
    },
  ],
};
