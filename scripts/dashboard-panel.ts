// The rows and panels of the dashboard, before dashboard.ts turns them into Grafana's JSON. Types only.

export interface DashboardRow {
  readonly title: string;
  readonly panels: readonly DashboardPanel[];
}

export interface DashboardPanel {
  readonly title: string;
  /** The meaning of the panel, and its good values. */
  readonly description: string;
  /** A number, a graph over time, or a table with a line for each series. */
  readonly kind: 'stat' | 'graph' | 'table';
  /** The title of a table's value column; without a title the table shows only labels. */
  readonly column?: string;
  /** One of Grafana's units: `short`, `s`, `percentunit`, `Bps`. */
  readonly unit: string;
  /** Legend → expression. */
  readonly targets: Readonly<Record<string, string>>;
  /** The lowest value of each color. */
  readonly colors?: readonly (readonly [color: 'green' | 'yellow' | 'red', from: number | null])[];
}
