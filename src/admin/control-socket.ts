import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { RecentRequests } from '../record/recent-requests.ts'
import { listenPrivately } from '../system/listen.ts'
import { ensureFolder } from '../system/own-files.ts'
import type { GrantSummary, Tokens } from '../tokens/token-contract.ts'
import { ClientGone, readSmallBody } from './answer.ts'
import { readRevocation } from './operator-revocation.ts'

/** The socket for `postern status`, `postern explain` and `postern revoke`. Every user that can open it may revoke tokens. */
export interface ControlSocket {
  close(): Promise<void>
}

export interface ControlDependencies {
  readonly tokens: Pick<Tokens, 'grants' | 'revoke'>
  readonly requests: Pick<RecentRequests, 'recent' | 'explain' | 'remembered'>
  /** The addresses of the listeners; empty until they listen. */
  readonly listening: () => readonly string[]
  /** The socket could not be opened, or a command failed because of a bug; `what` says which commands do not work. */
  readonly onFailure: (error: unknown, what: string) => void
}

/** The response to `GET /requests`. */
export interface ListedRequests {
  readonly requests: ReturnType<RecentRequests['recent']>
}

/** The response to `GET /explain?id=ID`. */
export interface Explained {
  /** More than one if a trusted proxy sent the id more than once; the latest first. */
  readonly explanations: ReturnType<RecentRequests['explain']>
  readonly remembered: ReturnType<RecentRequests['remembered']>
}

interface ControlResponse {
  readonly status: number
  readonly value: object
}

interface Command {
  /** As in `postern status`. */
  readonly name: string
  readonly execute: (req: IncomingMessage, query: URLSearchParams) => Promise<ControlResponse>
}

export function controlSocketPath(stateDir: string): string {
  return join(stateDir, 'control.sock')
}

/**
 * Opens an HTTP server on a Unix socket that only the sidecar's own user (and root) can open, whatever the mode of the folder is. If that
 * fails, `onFailure` is called and the sidecar serves its clients without it.
 */
export async function openControlSocket(
  stateDir: string,
  { tokens, requests, listening, onFailure }: ControlDependencies,
): Promise<ControlSocket> {
  async function status(): Promise<ControlResponse> {
    const grants = await tokens.grants()
    if (grants === 'unavailable') return storeUnavailable()
    return done({ listening: listening(), tokens: countsOf(grants), grants })
  }

  async function explain(_req: IncomingMessage, query: URLSearchParams): Promise<ControlResponse> {
    const explanations = requests.explain(query.get('id') ?? '')
    return done({ explanations, remembered: requests.remembered() } satisfies Explained)
  }

  async function revoke(req: IncomingMessage): Promise<ControlResponse> {
    const which = readRevocation((await readSmallBody(req)) ?? '')
    if (which === undefined)
      return failed(400, 'name what to revoke: {"all": true}, {"client": ADDRESS} or {"grant": ID}')
    const revoked = await tokens.revoke(which, 'operator')
    return revoked === 'unavailable' ? storeUnavailable() : done({ revoked })
  }

  const list = async (): Promise<ControlResponse> =>
    done({ requests: requests.recent() } satisfies ListedRequests)

  const commands: ReadonlyMap<string, Command> = new Map([
    ['GET /status', { name: 'status', execute: status }],
    ['GET /requests', { name: 'explain', execute: list }],
    ['GET /explain', { name: 'explain', execute: explain }],
    ['POST /revoke', { name: 'revoke', execute: revoke }],
  ])

  const server = createServer({ requestTimeout: 5_000 }, (req, res) => {
    const [path, query] = (req.url ?? '').split('?', 2)
    const command = commands.get(`${req.method} ${path}`)
    const executed = command?.execute(req, new URLSearchParams(query)) ?? failed(404, 'unknown command')
    Promise.resolve(executed)
      .catch((error: unknown) => {
        if (!(error instanceof ClientGone)) onFailure(error, `postern ${command?.name} failed`)
        return failed(500, 'the command failed')
      })
      .then(({ status, value }) => {
        res.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' })
        res.end(JSON.stringify(value))
      })
  })
  let remove = async (): Promise<void> => {}
  try {
    ensureFolder(stateDir)
    remove = await listenPrivately(server, controlSocketPath(stateDir))
  } catch (error) {
    onFailure(error, 'postern status, explain and revoke will not work')
  }
  return {
    async close() {
      await remove()
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
    },
  }
}

function done(value: object): ControlResponse {
  return { status: 200, value }
}

function failed(status: number, error: string): ControlResponse {
  return { status, value: { error } }
}

function storeUnavailable(): ControlResponse {
  return failed(503, 'the shared store does not respond, or refuses the command: /readyz says which')
}

function countsOf(grants: readonly GrantSummary[]): { readonly access: number; readonly refresh: number } {
  return {
    access: grants.reduce((sum, { accessTokens }) => sum + accessTokens, 0),
    refresh: grants.reduce((sum, { refreshTokens }) => sum + refreshTokens, 0),
  }
}
