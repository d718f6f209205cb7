// What `headgate why` prints of a route and its like, and of a request.

import { counted } from '../base/counted.ts';
import type { Access } from '../report/answers/access/access.ts';
import type { ObjectExplanation, RuleExplanation } from '../report/answers/explain-object.ts';
import type { PoolExplanation } from '../report/answers/explain-pools.ts';
import type { RequestAnswer, RequestExplanation } from '../report/answers/explain-request.ts';
import { bad, good, type Line, type Part, tableLines, title, verdictPart } from './text.ts';

export function objectLines({
  object,
  verdict,
  reasons,
  parents,
  rules,
}: ObjectExplanation): readonly Line[] {
  const lines: Line[] = [[title(object), ': ', verdictPart(verdict)]];
  for (const reason of reasons) lines.push(`  - ${reason}`);
  for (const { name, conditions } of parents) {
    const parts = conditions.flatMap(({ type, status, reason }, at) => [
      at === 0 ? '' : ', ',
      status === 'False' ? bad(`not ${type} (${reason})`) : good(type),
    ]);
    if (parts.length === 0 && name !== '') lines.push(name);
    else if (parts.length > 0) lines.push([name === '' ? 'Status: ' : `${name}: `, ...parts]);
  }
  for (const rule of rules) lines.push(...ruleLines(rule));
  return lines;
}

function ruleLines({ name, places, matches, action, pools }: RuleExplanation): readonly Line[] {
  return [
    `${name} ${action}`,
    ...places.map((place) => `    at ${place}`),
    ...matches.map((match) => `    for ${match}`),
    ...pools.map(poolLine),
  ];
}

function poolLine({ name, weight, ready, members }: PoolExplanation): string {
  if (name === '') return `    to a backend that does not exist or is not permitted (weight ${weight})`;
  return `    to ${name} (weight ${weight}): ${ready} of ${counted(members, 'member')} ready`;
}

export function requestLines({ url, answers, reason }: RequestExplanation): readonly Line[] {
  if (answers.length === 0) return [[title(url), ': ', bad(reason)]];
  return answers.flatMap((answer) => answerLines(url, answer));
}

function answerLines(
  url: string,
  {
    loadBalancer,
    addresses,
    isServed,
    section,
    rule,
    action,
    pools,
    others,
    access,
    toMember,
  }: RequestAnswer,
): readonly Line[] {
  const at = addresses.length === 0 ? 'no address' : addresses.join(', ');
  const location = `${loadBalancer} on ${at}${section === '' ? '' : `, listener "${section}"`}`;
  const unserved: readonly Line[] = isServed ? [] : ['  - The dataplane does not serve this listener (yet)'];
  return [
    [title(url), `: ${location}`],
    ...unserved,
    [pools.length === 0 && rule === '' ? bad(`  ${action}`) : `  ${rule === '' ? '' : `${rule} `}${action}`],
    ...pools.map(poolLine),
    ...others.map((other) => `    ${other.isUnclear ? 'perhaps' : 'not'} ${other.rule}: ${other.why}`),
    ...accessLines(access),
    ...toMember.map((note) => `  - ${note}`),
  ];
}

/** To whom it is open, each check on the way, and what servers are asked. */
export function accessLines({ verdict, sentence, checks }: Access): readonly Line[] {
  const lines = tableLines(checks.map(checkCells));
  return [
    ['  ', verdict === 'refused' ? bad(sentence) : verdict === 'open' ? good(sentence) : sentence],
    ...checks.flatMap(({ question = [], result }, at) => [
      ...lines.slice(at, at + 1),
      ...(result === 'not reached' ? [] : question.map((part) => `      ${part}`)),
    ]),
  ];
}

function checkCells({ name, result, detail, answer }: Access['checks'][number]): readonly Part[] {
  const isEnd = result === 'redirected' || result === 'answered';
  const otherwise = answer === '' || isEnd ? '' : `; otherwise ${answer}`;
  const words =
    result === 'refused' || result === 'answered' ? `${detail}: ${answer}` : `${detail}${otherwise}`;
  return [`    ${name}`, result === 'refused' ? bad(result) : result, words];
}
