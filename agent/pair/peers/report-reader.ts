// Cuts what the peer sends into reports. A peer that sends anything else is not listened to any further.

import { LONGEST_REPORT, type PairReport, parseReport } from './report.ts';

const NEWLINE = 0x0a;

export class ReportReader {
  #rest: Buffer = Buffer.alloc(0);

  /** The reports that end in this chunk. Throws an error that says what is wrong with one. */
  *push(chunk: Buffer): Generator<PairReport, void, void> {
    let rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      if (end >= LONGEST_REPORT) break;
      const report = parseReport(rest.toString('utf8', 0, end));
      if (typeof report === 'string') throw new Error(`Not a report: ${report}`);
      yield report;
      rest = rest.subarray(end + 1);
    }
    if (rest.length >= LONGEST_REPORT) throw new Error(`A report of more than ${LONGEST_REPORT} bytes`);
    this.#rest = rest;
  }
}
