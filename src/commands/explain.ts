import { type Explained, type ListedRequests, LONGEST_ID } from '../admin/control-socket.ts'
import type { Explanation, RequestRow } from '../record/explanation.ts'
import type { Remembered } from '../record/recent-requests.ts'
import { SetupError } from '../system/setup-error.ts'
import type { CommandIo, ExitCode } from './command.ts'
import { type ConfigOptions, configFrom } from './configuration.ts'
import { control, table } from './control.ts'

export interface ExplainOptions extends ConfigOptions {
  readonly json: boolean
}

/**
 * Tells what the running sidecar decided about the request with this id, and why. Without an id it lists the last requests.
 * Rejects with exit code 1 if the request is not remembered.
 */
export async function explainCommand(
  id: string | undefined,
  options: ExplainOptions,
  io: CommandIo,
): Promise<ExitCode> {
  const { stateDir } = configFrom(options, io)
  if (id === undefined) return listCommand(stateDir, options, io)
  // A text that is longer than a request head may be would break the connection.
  if (id.length > LONGEST_ID) {
    throw new SetupError(`the id of a request has at most ${LONGEST_ID} characters`)
  }
  const path = `/explain?id=${encodeURIComponent(id)}`
  const answer = await control<Explained>(stateDir, { method: 'GET', path })
  const { explanations, remembered } = answer
  if (options.json) io.stdout.write(`${JSON.stringify(answer)}\n`)
  else if (explanations.length > 0) io.stdout.write(explanations.map(textOf).join('\n'))
  if (explanations.length > 0) return 0
  throw new SetupError(notRemembered(remembered), { exitCode: 1 })
}

async function listCommand(stateDir: string, { json }: ExplainOptions, io: CommandIo): Promise<ExitCode> {
  const answer = await control<ListedRequests>(stateDir, { method: 'GET', path: '/requests' })
  if (json) io.stdout.write(`${JSON.stringify(answer)}\n`)
  else if (answer.requests.length === 0) io.stdout.write('no requests yet\n')
  else io.stdout.write(`${listOf(answer.requests)}\n`)
  return 0
}

function listOf(requests: readonly RequestRow[]): string {
  const rows = requests.map(({ time, id, client, status, refusal, duration, method, path }) => [
    new Date(time).toISOString(),
    id,
    client,
    String(status),
    refusal ?? '-',
    `${duration.toFixed(1)} ms`,
    `${method} ${path}`,
  ])
  return table([['TIME', 'ID', 'CLIENT', 'STATUS', 'REFUSAL', 'DURATION', 'REQUEST'], ...rows])
}

function textOf({ request, findings }: Explanation): string {
  const facts = findings.map(({ title, text }) => [title, text])
  return `${table([['Id', request.id], ['Arrived', new Date(request.time).toISOString()], ...facts])}\n`
}

const KEPT: Readonly<Record<Remembered['what'], string>> = {
  answered: 'answered',
  'rate-limited': 'over the limit',
  refused: 'refused for another reason',
}

/** The message does not repeat the id: the operator may have typed a token instead. */
function notRemembered(remembered: readonly Remembered[]): string {
  const kept = remembered.map(({ what, requests, since }) =>
    since === null ? `0 ${KEPT[what]}` : `${requests} ${KEPT[what]} since ${new Date(since).toISOString()}`,
  )
  return (
    `no request with this id is remembered; those that are: ${kept.join(', ')}. ` +
    'A request is remembered when it has ended: of one second the first 200, 100 and 100 of these kinds. ' +
    'One that was no valid HTTP has no id.'
  )
}
