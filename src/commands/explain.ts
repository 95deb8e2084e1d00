import { type Explained, type ListedRequests, LONGEST_ID } from '../admin/control-socket.ts'
import type { Explanation, RequestRow } from '../record/explanation.ts'
import type { Remembered, Wanted } from '../record/recent-requests.ts'
import { systemClock } from '../system/clock.ts'
import { SetupError } from '../system/setup-error.ts'
import { columnsOf, linesOf, wrapped } from './columns.ts'
import type { CommandIo, ExitCode } from './command.ts'
import { control } from './control.ts'
import { type SidecarOptions, stateDirOf } from './find-sidecar.ts'
import { spanOf, timeText } from './times.ts'

export interface ExplainOptions extends SidecarOptions, Wanted {
  readonly json: boolean
}

const STATUS = /^[1-5](?:\d\d|xx)$/

/**
 * Tells what the running sidecar decided about the request with this id, and why. Without an id it lists the last requests, or only those
 * with a reason or status. Rejects with exit code 1 if the request is not remembered.
 */
export async function explainCommand(
  id: string | undefined,
  options: ExplainOptions,
  io: CommandIo,
): Promise<ExitCode> {
  const { reason, status } = options
  if (status !== undefined && !STATUS.test(status))
    throw new SetupError('--status: must be a status or a class of them, such as 500 or 5xx')
  if (id !== undefined && (reason ?? status) !== undefined)
    throw new SetupError('an id names one request: leave out --reason and --status')
  const stateDir = stateDirOf('explain', options, io)
  if (id === undefined) return listCommand(stateDir, options, io)
  // An id that exceeds the limit on a request head would break the connection.
  if (id.length > LONGEST_ID) {
    throw new SetupError(`the id of a request has at most ${LONGEST_ID} characters`)
  }
  const path = `/explain?id=${encodeURIComponent(id)}`
  const answer = await control<Explained>(stateDir, { method: 'GET', path })
  const { explanations, remembered } = answer
  if (options.json) io.stdout.write(`${JSON.stringify(answer)}\n`)
  else if (explanations.length > 0) {
    const columns = columnsOf(io.stdout)
    io.stdout.write(explanations.map((each) => textOf(each, columns)).join('\n'))
  }
  if (explanations.length > 0) return 0
  throw new SetupError(notRemembered(remembered), { exitCode: 1 })
}

async function listCommand(
  stateDir: string,
  { json, reason, status }: ExplainOptions,
  io: CommandIo,
): Promise<ExitCode> {
  const list = (query: string) =>
    control<ListedRequests>(stateDir, { method: 'GET', path: `/requests${query}` })
  const wanted = Object.entries({ reason, status }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  )
  const answer = await list(wanted.length === 0 ? '' : `?${wanted.join('&')}`)
  if (json) io.stdout.write(`${JSON.stringify(answer)}\n`)
  else if (answer.requests.length === 0)
    io.stdout.write(wanted.length === 0 ? 'no requests yet\n' : noneSuch((await list('')).requests))
  else io.stdout.write(`${listOf(answer.requests, columnsOf(io.stdout))}\n`)
  return 0
}

/** Says that no request matches, and which reasons and statuses there are. Does not repeat the text that the operator typed. */
function noneSuch(others: readonly RequestRow[]): string {
  const reasons = new Set(others.flatMap(({ refusal }) => refusal ?? []))
  const known = reasons.size === 0 ? 'no request was refused' : `reasons: ${[...reasons].sort().join(', ')}`
  const statuses = new Set(others.map(({ status }) => status))
  return `no such request is remembered; ${known}; statuses: ${[...statuses].sort().join(', ') || 'none'}\n`
}

/** Two lines for each request. An id is for copying, so it is never cut. It is last on its line, because it may be long. */
function listOf(requests: readonly RequestRow[], columns: number): string {
  const present = systemClock.wall()
  const first = linesOf([
    ['AGE', 'STATUS', 'REFUSAL', 'ID'],
    ...requests.map(({ time, id, status, refusal }) => [
      spanOf(present - time),
      String(status),
      refusal ?? '-',
      id,
    ]),
  ])
  const second = [
    'CLIENT  DURATION  REQUEST',
    ...requests.map(
      ({ client, duration, method, path }) => `${client}  ${Math.round(duration)} ms  ${method} ${path}`,
    ),
  ]
  return first
    .map((line, i) => `${wrapped(line, 0, columns)}\n     ${wrapped(second[i] ?? '', 5, columns)}`)
    .join('\n')
}

function textOf({ request, findings }: Explanation, columns: number): string {
  const present = systemClock.wall()
  const facts = [
    { title: 'Id', text: request.id },
    { title: 'Arrived', text: `${timeText(request.time)}, ${spanOf(present - request.time)} ago` },
    ...findings,
  ]
  const indent = Math.max(...facts.map(({ title }) => title.length)) + 2
  return facts.map(({ title, text }) => `${title.padEnd(indent)}${wrapped(text, indent, columns)}\n`).join('')
}

const KEPT: Readonly<Record<Remembered['what'], string>> = {
  answered: 'answered',
  failed: 'failed',
  'rate-limited': 'over the limit',
  refused: 'refused for another reason',
}

/** The message does not repeat the id: the operator may have typed a token instead. */
function notRemembered(remembered: readonly Remembered[]): string {
  const kept = remembered.map(({ what, requests, since }) =>
    since === null ? `0 ${KEPT[what]}` : `${requests} ${KEPT[what]} since ${timeText(since)}`,
  )
  return (
    `no request with this id is remembered; those that are: ${kept.join(', ')}. ` +
    'A request is remembered when it has ended: of one second the first 160, 80, 80 and 80 of these kinds. ' +
    'One that was no valid HTTP has no id.'
  )
}
