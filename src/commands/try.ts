import type { IncomingMessage } from 'node:http'
import { targetProblem } from '../config/address.ts'
import { SetupError } from '../system/setup-error.ts'
import { counted } from './columns.ts'
import type { ExitCode, ProgramIo } from './command.ts'
import { type ConfigOptions, configFrom, withFlags } from './configuration.ts'
import { stillWaiting } from './still-waiting.ts'
import { type Given, openAccess, readGiven } from './try/access.ts'
import { printable, tooMany } from './try/answer.ts'
import { createBodyOutput } from './try/body-output.ts'
import { curlCommand, tokenSource } from './try/curl-command.ts'
import { openPublicListenerClient } from './try/public-listener-client.ts'

export interface TryOptions extends ConfigOptions {
  /** The file with an access token; `-`: standard input. Without it the password is asked for. */
  readonly tokenFile?: string
}

type TryIo = Omit<ProgramIo, 'daemon' | 'permissions'>

/**
 * Requests a path of the device as a client of the running sidecar does: gets a token for the password, sends the request, and ends the
 * login again, if clients can do that. Writes the body to standard output, all else to standard error. Resolves to 1 for a status of 400 or
 * more. Rejects with a `SetupError`: exit code 2 for a bad path, file or configuration, 1 without a response.
 */
export async function tryCommand(path: string, options: TryOptions, io: TryIo): Promise<ExitCode> {
  const problem = targetProblem(path)
  if (problem !== undefined) throw new SetupError(problem, { key: 'PATH' })
  const config = configFrom(options, io)
  const typed = (words: string): string => withFlags(io.typed, words, options)
  const client = await openPublicListenerClient(config, io.clock, typed('serve'))
  // Otherwise a password might be typed in vain.
  await client.tryToConnect()
  const given = await readGiven(options.tokenFile, io)
  // A signal ends the request, and then the login is ended, too.
  const stop = new AbortController()
  io.onSignals('SIGTERM', 'SIGINT', 'SIGHUP')(() => stop.abort())
  try {
    const opening = openAccess(client, given, config.oauth.revocationPath, stop.signal)
    await using access = await stillWaiting('a token', opening, io)
    const headers = { Authorization: `Bearer ${access.token}` }
    const sent = client.send({ method: 'GET', target: path, headers }, stop.signal)
    const response = await stillWaiting('the response', sent, io)
    await show(response, io)
    const id = response.headers['x-request-id']
    if (isError(response) && typeof id === 'string' && /^[\w-]+$/.test(id))
      io.stderr.write(`\nWhy:\n  ${typed(`explain ${id}`)}\n`)
    const source = tokenSource(options.tokenFile, config, (words) => typed(`issue ${words}`))
    io.stderr.write(`\nThe same with curl:\n  ${curlCommand(source, client, path)}\n`)
    return verdictOn(response, given)
  } catch (error) {
    throw stop.signal.aborted ? new SetupError('stopped', { exitCode: 1 }) : error
  }
}

const isError = ({ statusCode = 0 }: IncomingMessage): boolean => statusCode >= 400

/** The exit code for a response. Throws a `SetupError` if it is clear what would do. */
function verdictOn(response: IncomingMessage, { kind }: Given): ExitCode {
  if (response.statusCode === 429) throw tooMany(response, 'limits.api')
  if (response.statusCode === 401 && kind === 'token') {
    const remedy = 'postern issue makes another one'
    throw new SetupError('the token is unknown, has expired or is revoked', { exitCode: 1, remedy })
  }
  return isError(response) ? 1 : 0
}

/** The fields of a response that are shown. */
const SHOWN = /^(?:content-type|location|proxy-status|retry-after|x-ratelimit-(?:limit|remaining|reset))$/i

/** Writes a response as it arrives. */
async function show(response: IncomingMessage, { stdout, stderr, clock, lostOutput }: TryIo): Promise<void> {
  const { statusCode, statusMessage, rawHeaders } = response
  stderr.write(`${printable(`${statusCode} ${statusMessage}`)}\n`)
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2)
    if (SHOWN.test(name))
      stderr.write(`${printable(`${name}: ${value}${spanTo(name, value, clock.wall())}`)}\n`)
  }
  stderr.write('\n')
  const output = createBodyOutput(stdout)
  let length = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      output.write(chunk)
      length += chunk.length
      if (lostOutput() !== undefined) break
    }
  } catch (error) {
    throw new SetupError(`the response broke off after ${counted(length, 'byte')}`, {
      exitCode: 1,
      cause: error,
    })
  } finally {
    if (output.end() === 'no text')
      stderr.write(`(${counted(length, 'byte')}, no text: send standard output to a file)\n`)
  }
}

/** How long it is to the end of a window. */
function spanTo(name: string, value: string, wall: number): string {
  if (!/^x-ratelimit-reset$/i.test(name) || !/^\d+$/.test(value)) return ''
  return ` (in ${Math.max(0, Math.ceil(Number(value) - wall / 1000))} s)`
}
