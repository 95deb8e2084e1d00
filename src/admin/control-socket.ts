import { chmod } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { UNIX_PEER } from '../gate/client-address.ts'
import { normalizeAddress, prefix64 } from '../http/ip.ts'
import { listen } from '../system/listen.ts'
import { ensureFolder } from '../system/own-files.ts'
import type { Revocation, TokenStore, Tokens } from '../tokens/token-contract.ts'

/** The way in for `postern status` and `postern revoke`: whoever may open the socket may revoke. */
export interface ControlSocket {
  close(): Promise<void>
}

export interface ControlDependencies {
  readonly tokens: Pick<Tokens, 'grants' | 'revoke'> & Pick<TokenStore, 'counts'>
  /** The socket could not be opened, or a request on it hit a bug. */
  readonly onTrouble: (error: unknown) => void
}

interface ControlAnswer {
  readonly status: number
  readonly value: object
}

/** A command is one short line; more is a mistake (bytes). */
const LARGEST_COMMAND = 4096

export function controlSocketPath(stateDir: string): string {
  return join(stateDir, 'control.sock')
}

/**
 * HTTP on a Unix socket that only the sidecar's own user may open: 0600 in a folder of 0700. A sidecar whose socket
 * cannot be opened serves its clients all the same.
 */
export async function openControlSocket(
  stateDir: string,
  { tokens, onTrouble }: ControlDependencies,
): Promise<ControlSocket> {
  async function answer(req: IncomingMessage): Promise<ControlAnswer> {
    if (req.method === 'GET' && req.url === '/status') {
      return { status: 200, value: { tokens: tokens.counts(), grants: await tokens.grants() } }
    }
    if (req.method !== 'POST' || req.url !== '/revoke')
      return { status: 404, value: { error: 'unknown command' } }
    const which = readRevocation(await readText(req))
    return which === undefined
      ? {
          status: 400,
          value: { error: 'name what to revoke: {"all": true}, {"client": ADDRESS} or {"grant": ID}' },
        }
      : { status: 200, value: { revoked: await tokens.revoke(which, 'operator') } }
  }

  const server = createServer({ requestTimeout: 5_000 }, (req, res) => {
    answer(req)
      .catch((error: unknown) => {
        onTrouble(error)
        return { status: 500, value: { error: 'the command failed' } }
      })
      .then(({ status, value }) => {
        res.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' })
        res.end(JSON.stringify(value))
      })
  })
  const path = controlSocketPath(stateDir)
  try {
    ensureFolder(stateDir)
    await listen(server, { kind: 'unix', path })
    await chmod(path, 0o600)
  } catch (error) {
    onTrouble(error)
  }
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function readText(req: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of req.setEncoding('utf8')) {
    text += String(chunk)
    if (text.length > LARGEST_COMMAND) throw new Error('the command is too long')
  }
  return text
}

/** What an operator can name: everything, the grants of one client, or one grant. */
export type OperatorRevocation = Exclude<Revocation, { readonly token: string }>

/** Undefined for anything that does not name exactly one of them, and for a client that is no address. */
export function readRevocation(text: string): OperatorRevocation | undefined {
  const value = parse(text)
  if (value === null || typeof value !== 'object' || Object.keys(value).length !== 1) return undefined
  if ('all' in value && value.all === true) return { all: true }
  if ('grant' in value && typeof value.grant === 'string') return { grant: value.grant }
  if (!('client' in value) || typeof value.client !== 'string') return undefined
  const client = clientKeyOf(value.client)
  return client === undefined ? undefined : { client }
}

/**
 * The client that an address belongs to, as the limits count clients (C17): an IPv4 address, also for its IPv4-mapped
 * form; the /64 of an IPv6 address; `unix`. Undefined for anything else, such as a range other than a /64.
 */
export function clientKeyOf(text: string): string | undefined {
  if (text === UNIX_PEER) return UNIX_PEER
  const address = normalizeAddress(text.replace(/(:.*)\/64$/, '$1'))
  return address === undefined ? undefined : prefix64(address)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return undefined
  }
}
