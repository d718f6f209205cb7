// The second file of a pushed text: the agent's socket, the mark by which a worker proves what it booted, the group of the
// image, and the way of metrics.

import { readFileSync } from 'node:fs';
import { loadTemplate } from '../base/template.ts';
import type { PushedFiles } from './files.ts';
import type { PushedText } from './text/pushed-text.ts';

const template = loadTemplate('pushed/second');
/** The section by which Octavia's text has HAProxy's own metrics, for listeners that show them. */
const EXPORTER = 'frontend prometheus-exporter-internal-endpoint';
const GROUP = /^[a-z_][a-z0-9_-]{0,31}$/;

/** Sections of the second file, which no report shows. */
export const OWN_PROXY = /^prometheus-exporter-agent(?:-source|-answers)?$/;

/** `mark`: the description of the workers that boot with it. */
export function secondFile(text: PushedText, mark: string, group: string, files: PushedFiles): string {
  const { adminSocket, exporterSocket, metricsSocket } = files;
  const isExporting = isExportingMetrics(text);
  return template({ mark, group, adminSocket, exporterSocket, metricsSocket, isExporting });
}

export function isExportingMetrics({ sections }: PushedText): boolean {
  return sections.has(EXPORTER);
}

/**
 * The group in the image's file, which has a line `group nogroup`; Debian's if there is no such file or line.
 * `path`: such as /var/lib/octavia/haproxy-default-user-group.conf.
 */
export function groupOfImage(path: string): string {
  let text = '';
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return 'nogroup';
  }
  const group = /^\s*group\s+(\S+)\s*$/m.exec(text)?.[1] ?? '';
  return GROUP.test(group) ? group : 'nogroup';
}
