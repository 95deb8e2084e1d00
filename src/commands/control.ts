import { type IncomingMessage, type RequestOptions, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { controlSocketPath } from '../admin/control-socket.ts'
import { abortAfter, systemClock } from '../system/clock.ts'
import { codeOf, reasonOf, SetupError } from '../system/setup-error.ts'

/** How long the sidecar may take to respond (ms). */
const LIMIT = 10_000

/** The status of a command with a name that the configuration does not have. The caller has to correct it. */
const MISNAMED = 422

/**
 * Sends a command to the sidecar that runs on `stateDir` and returns its response. Fails with a `SetupError` if no sidecar runs
 * there, if it refuses the command, or if it has not responded within `limit` ms. The exit code is 2 for a command with a name that the
 * configuration does not have, otherwise 1.
 */
export async function control<Response extends object = object>(
  stateDir: string,
  { method, path, command }: { readonly method: string; readonly path: string; readonly command?: object },
  limit: number = LIMIT,
): Promise<Response> {
  const socketPath = controlSocketPath(stateDir)
  const sent = command === undefined ? undefined : JSON.stringify(command)
  const { status, body } = await ask({ socketPath, method, path }, limit, sent).catch((error: unknown) => {
    throw new SetupError(reasonFor(error, stateDir, socketPath, limit), { exitCode: 1, cause: error })
  })
  const response = parse(body)
  if (status !== 200) {
    const reason = response !== undefined && 'error' in response ? String(response.error) : body.trim()
    throw new SetupError(`the sidecar refused: ${reason}`, { exitCode: status === MISNAMED ? 2 : 1 })
  }
  // Proof of the cast: the same program wrote the response.
  if (response !== undefined) return response as Response
  throw new SetupError(`${socketPath} does not answer like Postern`, { exitCode: 1 })
}

function parse(body: string): object | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

function reasonFor(error: unknown, stateDir: string, socketPath: string, limit: number): string {
  if (error instanceof NoResponse)
    return `the sidecar on ${stateDir} did not respond within ${limit / 1000} seconds`
  const code = codeOf(error)
  if (code === 'ENOENT' || code === 'ECONNREFUSED')
    return `no sidecar is running on ${stateDir} (looked for ${socketPath}); name the service's with --instance or --set state_dir=...`
  return code === 'EACCES'
    ? `${socketPath} is open to root and the user of the sidecar only; run this command as one of them`
    : `cannot talk to ${socketPath}: ${reasonOf(error)}`
}

class NoResponse extends Error {}

/** @param limit milliseconds */
export function noResponse(limit: number): Error {
  return new NoResponse(`no response within ${limit / 1000} s`)
}

/** Sends one request. Rejects with `NoResponse` after `limit` ms, and with the error of the connection. */
export async function ask(
  target: RequestOptions,
  limit: number,
  sent?: string,
): Promise<{ readonly status: number; readonly body: string }> {
  using deadline = abortAfter(systemClock, limit)
  const { signal } = deadline
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request({ agent: false, ...target, signal }, resolve)
        .on('error', reject)
        .end(sent)
    })
    return { status: response.statusCode ?? 0, body: await text(response) }
  } catch (error) {
    throw signal.aborted ? noResponse(limit) : error
  }
}
