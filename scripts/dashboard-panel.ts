// What the rows and panels of the dashboard are made of, before they are Grafana's. Types only.

export interface DashboardRow {
  readonly title: string;
  readonly panels: readonly DashboardPanel[];
}

export interface DashboardPanel {
  readonly title: string;
  /** What one sees, and what is good. */
  readonly description: string;
  /** `stat`: a number; `graph`: over time; `table`: a line for each series. */
  readonly kind: 'stat' | 'graph' | 'table';
  /** What a table calls the value; without it the labels say all. */
  readonly column?: string;
  /** Of Grafana's units: `short`, `s`, `percentunit`, `Bps`. */
  readonly unit: string;
  /** Legend to expression. */
  readonly targets: Readonly<Record<string, string>>;
  /** Values from which on it is green, yellow, red; `[0, 1]` where 0 is bad and 1 good. */
  readonly colors?: readonly (readonly [color: 'green' | 'yellow' | 'red', from: number | null])[];
}
