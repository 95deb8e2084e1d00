import { readSecretLine } from '../../system/named-file.ts'
import { SetupError } from '../../system/setup-error.ts'
import { columnsOf, wrapped } from '../columns.ts'
import type { CommandIo } from '../command.ts'
import { exposureWarning } from '../exposed-file.ts'
import { readSecret } from '../hash-password.ts'
import { openPrompt, type Terminal } from '../prompt.ts'
import { printable, tooMany } from './answer.ts'
import type { Answer, PublicListenerClient } from './public-listener-client.ts'

/** A secret that the operator gave. */
export interface Given {
  readonly kind: 'password' | 'token'
  readonly secret: string
}

interface Streams extends Pick<CommandIo, 'stderr'> {
  readonly stdin: () => Terminal['stdin']
}

/** RFC 6750 §2.1. */
const TOKEN = /^[\w.~+/-]+=*$/

/**
 * Reads a token from a file, or from standard input for `-`; without a file, a password. Warns of a file that other users can read or write.
 * Rejects with a `SetupError`.
 */
export async function readGiven(tokenFile: string | undefined, streams: Streams): Promise<Given> {
  if (tokenFile === undefined) return { kind: 'password', secret: await readPassword(streams) }
  const secret =
    tokenFile === '-'
      ? await readSecret(streams.stdin(), 'the token')
      : await readSecretLine('--token-file', tokenFile)
  const warning = tokenFile === '-' ? undefined : await exposureWarning('--token-file', tokenFile)
  if (warning !== undefined)
    streams.stderr.write(`WARNING ${wrapped(warning, 8, columnsOf(streams.stderr))}\n`)
  if (TOKEN.test(secret)) return { kind: 'token', secret }
  throw new SetupError('what it holds is no token; postern issue prints one', { key: '--token-file' })
}

async function readPassword({ stdin: open, stderr }: Streams): Promise<string> {
  const stdin = open()
  if (stdin.isTTY !== true) return readSecret(stdin, 'the password')
  using prompt = openPrompt({ stdin, stderr })
  const password = await prompt.askHidden('Password: ')
  if (password === '') throw new SetupError('the password is empty')
  return password
}

/** An access token. Its disposal ends the login that was made for it. */
interface Access extends AsyncDisposable {
  readonly token: string
}

/**
 * The token that was given, or one for the password. Rejects with a `SetupError` with exit code 1 if there is none.
 *
 * @param revocationPath where the login is ended; `off`: it ends by itself
 */
export async function openAccess(
  client: PublicListenerClient,
  { kind, secret }: Given,
  revocationPath: string,
  stop: AbortSignal,
): Promise<Access> {
  if (kind === 'token') return { token: secret, [Symbol.asyncDispose]: async () => {} }
  const form = { grant_type: 'password', password: secret }
  const answer = await client.ask({ method: 'POST', target: '/oauth/token', form }, stop)
  const { json } = answer
  const [token, refreshToken] = [member(json, 'access_token'), member(json, 'refresh_token')]
  if (token === undefined || refreshToken === undefined || !TOKEN.test(token)) throw refusal(answer)
  return {
    token,
    async [Symbol.asyncDispose]() {
      if (revocationPath === 'off') return
      const revocation = { method: 'POST', target: revocationPath, form: { token: refreshToken } } as const
      const ended = await client.send(revocation).catch(() => undefined)
      ended?.destroy()
    },
  }
}

function member(answer: unknown, name: string): string | undefined {
  const value: unknown = Object.getOwnPropertyDescriptor(answer ?? {}, name)?.value
  return typeof value === 'string' ? value : undefined
}

function refusal({ response, json }: Answer): SetupError {
  if (response.statusCode === 429) return tooMany(response, 'limits.oauth')
  if (member(json, 'error') === 'invalid_grant') {
    const remedy = 'postern check names the file or the account that has the right one'
    return new SetupError('the password is wrong', { exitCode: 1, remedy })
  }
  const why = printable(member(json, 'error_description') ?? 'what answers there is not Postern')
  return new SetupError(`POST /oauth/token: ${response.statusCode}: ${why}`, { exitCode: 1 })
}
