import { type LogCounts, requests } from './survey.ts'

/** The counts of a log, and `log.access` of the configuration, if one is given. */
interface Log extends LogCounts {
  readonly access?: unknown
}

type Row = (log: Log) => string | false

/** Each row says why the log lacks requests. Only the first that applies is shown. */
const LACKS: readonly Row[] = [
  ({ access }) =>
    access !== undefined &&
    access !== true &&
    `log.access is ${access}, so the log lacks requests; set it to true, and wait until clients have done all that they do`,
  (log) =>
    log.requests + log.own === 0 &&
    log.other > 0 &&
    'the log has lines of Postern, but none of a request: log.access is false, or log.level above info',
  (log) =>
    log.requests > 0 &&
    log.reads === 0 &&
    'the log has no GET and no HEAD: if log.access is changes, it has only what may change something, and the proposal refuses all reads',
]

/** All rows that apply are shown. */
const OTHERS: readonly Row[] = [
  (log) =>
    log.requests + log.own + log.other === 0 &&
    log.foreign > 0 &&
    `none of ${log.foreign} lines is a line of Postern in JSON (log.format: json); use journalctl -o cat, and zcat for a .gz file`,
  ({ dropped }) => dropped > 0 && 'Postern has dropped lines of this log: requests are missing',
  ({ overrides }) =>
    overrides > 0 &&
    `${requests(overrides)} with a field that names another request, which will not reach the device: see docs/hardening.md`,
  ({ moves }) =>
    moves > 0 &&
    'MOVE and COPY also need the path of their Destination, which the log does not have; add it to their paths',
]

/** The warnings that an operator has to know before using the proposal. */
export function proposalWarnings(log: Log): readonly string[] {
  const saidBy = (rows: readonly Row[]) => rows.flatMap((says) => says(log) || [])
  return [...saidBy(LACKS).slice(0, 1), ...saidBy(OTHERS)]
}
