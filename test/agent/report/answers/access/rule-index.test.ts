// The index finds the rule that the plain search finds.

import test from 'ava';
import fc from 'fast-check';
import type { HttpRouting } from '../../../../../agent/model/routes.ts';
import { type AskedRequest, askedRequest } from '../../../../../agent/report/answers/access/asked-request.ts';
import { findRule } from '../../../../../agent/report/answers/access/find-rule.ts';
import { readPath } from '../../../../../agent/report/answers/access/path-rules.ts';
import { RuleIndex } from '../../../../../agent/report/answers/access/rule-index.ts';
import {
  ANY_HOSTS,
  NARROW_HOSTS,
  randomHosts,
  randomRequests,
} from '../../../../support/values/random-routes.ts';
import { sectionOf } from '../../../../support/values/routes.ts';

const SETTINGS = { dotSegments: 'pass', ambiguousPaths: 'reject-where-guarded' } as const;
const actions = fc.constantFrom<'web' | { readonly kind: 'answer'; readonly status: 403 }>('web', {
  kind: 'answer',
  status: 403,
});

test('The index finds the rule, the guarded host and the unclear rules that the plain search finds', (t) => {
  const met = { found: 0, unclear: 0, ambiguous: 0 };
  const property = fc.property(
    randomHosts(actions, ANY_HOSTS),
    randomHosts(actions, NARROW_HOSTS),
    fc.array(randomRequests, { minLength: 20, maxLength: 20 }),
    fc.boolean(),
    (any, narrow, requests, hasOtherHeaders) => {
      const sections = [sectionOf('any', '*', any), sectionOf('narrow', '*.a.example.org', narrow)];
      const routing: HttpRouting = { kind: 'http', sections, detectMisdirected: false };
      const index = new RuleIndex(routing);
      for (const { method, host, path, header } of requests) {
        const own = askedRequest(`http://${host}${path}`);
        const headers = new Map([...own.headers, ...(header === '' ? [] : [['x-a', [header]] as const])]);
        const request: AskedRequest = { ...own, method, headers, hasOtherHeaders };
        const read = readPath(request.path, SETTINGS);
        const { section, found, strict, others } = findRule(routing, request, read);
        const expected = {
          section: section?.name,
          rule: found?.entry,
          isAmbiguous: strict !== undefined,
          perhaps: others.filter(({ isUnclear }) => isUnclear).map(({ rule }) => rule),
        };
        const got = index.find(request, read);
        if (expected.rule !== undefined) met.found++;
        if (expected.perhaps.length > 0) met.unclear++;
        if (expected.isAmbiguous) met.ambiguous++;
        t.deepEqual(
          {
            section: got.section?.name,
            rule: got.entry,
            isAmbiguous: got.isAmbiguous,
            perhaps: got.perhaps.map(({ rule }) => rule.name),
          },
          expected,
        );
      }
    },
  );
  fc.assert(property, { numRuns: 150 });
  for (const [what, count] of Object.entries(met)) t.true(count > 10, `${what}: ${count}`);
});
