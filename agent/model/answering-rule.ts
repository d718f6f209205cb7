// Rules that do nothing but answer: what is closed, cannot be carried out, or is missing. Pure.

import type { AnswerAction, RouteRule } from './routes.ts';

/** What protects cannot be given, or does not let the client in. */
export const CLOSED = { kind: 'answer', status: 403 } as const;

/** It keeps the names of a rule, and nothing of what that does. */
export function answeringRule(
  { name, route }: Pick<RouteRule, 'name' | 'route'>,
  status: AnswerAction['status'],
): RouteRule {
  return {
    ...{ name, route, action: { kind: 'answer', status } },
    ...{ cors: undefined, responseHeaders: undefined, limits: undefined },
  };
}
