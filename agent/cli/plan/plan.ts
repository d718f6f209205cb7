// `headgate plan`: what a change of objects would do, before it is made. Needs no agent; changes nothing.

import { readFileSync } from 'node:fs';
import { type Arguments, type Command, JSON_FLAG } from '../command.ts';
import { print, usageError } from '../command-line.ts';
import { hasChanges, planAnswer, planLines, planMarkdown } from './answer.ts';
import { type ComparedStates, clusterCompared, folderPatched, foldersCompared } from './compared-states.ts';
import { logReader } from './read-log.ts';

const STDIN = 0;

export const plan: Command = {
  name: 'plan',
  purpose: 'say what a change of objects would do, before it is made',
  details: [
    'BEFORE and AFTER are folders or files of manifests. With one of them, BEFORE is the folders of the settings; with "-" as AFTER it is BEFORE with the patch of standard input, as git prints it.',
    'With --cluster BEFORE is what the API server has, and AFTER the same with the objects of the folder instead of its own.',
    'What opens comes first: to whom, and by which rule. Then what closes, load balancers with the commands or the reload that they take, addresses, ports, certificates, routes, members whose connections drain, and requests that get another answer or backend.',
    'With --requests each request of a log is asked of both: of the connection log, of a log in JSON, of an access log in the common or combined format, or as HAProxy writes it by default.',
  ],
  arguments: [{ name: 'BEFORE' }, { name: '[AFTER]' }],
  flags: {
    cluster: { placeholder: '', doc: 'compare with the objects of the API server' },
    requests: {
      placeholder: 'LOG',
      isRepeated: true,
      doc: 'a log whose requests are asked of both states, perhaps compressed by gzip or zstd; - for standard input',
    },
    host: { placeholder: 'NAME', doc: 'the host of lines of the log that have none' },
    markdown: { placeholder: '', doc: 'print it as Markdown, for a merge request' },
    ...JSON_FLAG,
  },
  settings: 'all',
  exits: {
    0: 'nothing changes',
    1: 'something changes',
    2: 'an object or a value would be refused that is not today',
  },
  examples: [
    { line: 'headgate plan manifests/ new/', doc: 'two folders' },
    { line: 'git diff main | headgate plan manifests/ -', doc: 'a patch of a folder' },
    {
      line: 'headgate plan --cluster new/ --requests /var/log/headgate/connections.log',
      doc: 'a folder over the cluster, and which requests of today would get something else',
    },
    { line: 'headgate plan ingresses/ routes/ --markdown', doc: 'Ingresses and the HTTPRoutes made of them' },
  ],
  run: async (given) => {
    const { requests, markdown, json, host } = given.own;
    if (markdown === true && json === true) throw usageError('Name one of --markdown and --json');
    const states = await statesOf(given);
    const readLog = Array.isArray(requests)
      ? logReader(requests, typeof host === 'string' ? host : '')
      : undefined;
    const answer = await planAnswer(states, given.settings, readLog);
    print(given, answer, markdown === true ? planMarkdown(answer) : planLines(answer));
    if (answer.problems.length > 0) return PROBLEMS;
    return hasChanges(answer) ? 1 : 0;
  },
};

const PROBLEMS = 2;

async function statesOf({ settings, own, positionals }: Arguments): Promise<ComparedStates> {
  const [first = '', second] = positionals;
  const { manifests } = settings;
  if (own.cluster === true) {
    if (second !== undefined) throw usageError('With --cluster name one folder: it is laid over the cluster');
    return clusterCompared([first], settings);
  }
  if (second !== '-')
    return foldersCompared(second === undefined ? manifests : [first], [second ?? first], settings);
  if (Array.isArray(own.requests) && own.requests.includes('-'))
    throw usageError('Standard input is either the patch or the log, not both');
  return folderPatched(first, readFileSync(STDIN, 'utf8'), settings);
}
