import type { GrantSummary } from '../tokens/token-contract.ts'
import { control } from './control-client.ts'
import type { CommandIo, ExitCode } from './io.ts'
import { type ConfigOptions, configFrom } from './serve.ts'

/** The answer of the control socket, as `admin/control-socket.ts` gives it. */
interface Status {
  readonly tokens: { readonly access: number; readonly refresh: number }
  readonly grants: readonly GrantSummary[]
}

/** Lists who is logged in: a line for each grant, by which it can be revoked. */
export async function statusCommand(
  options: ConfigOptions & { readonly json: boolean },
  io: CommandIo,
): Promise<ExitCode> {
  const { stateDir } = configFrom(options, io)
  // The other end of the socket is this same program.
  const status = (await control(stateDir, { method: 'GET', path: '/status' })) as Status
  io.stdout.write(options.json ? `${JSON.stringify(status)}\n` : table(status))
  return 0
}

function table({ tokens, grants }: Status): string {
  const rows = grants.map(({ id, client, issuedAt, expiresAt, accessTokens }) => [
    id,
    client,
    new Date(issuedAt).toISOString(),
    new Date(expiresAt).toISOString(),
    String(accessTokens),
  ])
  const lines = [['GRANT', 'CLIENT', 'ISSUED', 'EXPIRES', 'ACCESS TOKENS'], ...rows]
  const widths = [0, 1, 2, 3].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const text = lines.map((line) =>
    line
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  return `${text.join('\n')}\n\n${counted(grants.length, 'grant')}, ${counted(tokens.access, 'access token')}, ${counted(tokens.refresh, 'refresh token')}\n`
}

export function counted(number: number, what: string): string {
  return `${number} ${number === 1 ? what : `${what}s`}`
}
