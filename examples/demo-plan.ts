// The demonstration's folder and a changed copy of it, compared by `headgate plan`: what the change would open, and what it takes.

import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DemoAgent } from './demo-agent.ts';
import { manifestText, writeManifest } from './demo-manifest.ts';

export interface PlanReport {
  /** Of its output: the first line, what opens first, and what the other Service takes; '' for one that is missing. */
  readonly summary: string;
  readonly opens: string;
  readonly takes: string;
}

/** `port`: of a Service that only the copy has; `path`: the manifest of the one that has one member less there. */
export async function showPlan(
  directory: string,
  agent: Pick<DemoAgent, 'manifests' | 'command'>,
  port: number,
  path: string,
): Promise<PlanReport> {
  const planned = join(directory, 'planned');
  await cp(agent.manifests, planned, { recursive: true });
  await writeManifest(join(planned, 'debug.yaml'), manifestText('debug', port, port, []));
  const text = await readFile(path, 'utf8');
  const fewer = text.slice(0, text.lastIndexOf('  - addresses:'));
  await writeManifest(join(planned, path.slice(agent.manifests.length + 1)), fewer);
  const lines = (await agent.command('plan', agent.manifests, planned))
    .split('\n')
    .map((line) => line.trim());
  const [summary = ''] = lines;
  return {
    summary,
    opens: lines[lines.indexOf('Opens') + 1] ?? '',
    takes: lines.find((line) => line.startsWith('changes Service ')) ?? '',
  };
}
