import { chmod } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { RecentRequests } from '../record/recent-requests.ts'
import { listen } from '../system/listen.ts'
import { ensureFolder } from '../system/own-files.ts'
import type { GrantSummary, Tokens } from '../tokens/token-contract.ts'
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
  /** The socket could not be opened, or a command failed because of a bug. */
  readonly onFailure: (error: unknown) => void
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

/** The longest command (characters); a valid one is a short line. */
const LARGEST_COMMAND = 4096

const EXPLAIN = '/explain?'

const STORE_UNAVAILABLE: ControlResponse = {
  status: 503,
  value: { error: 'the shared store does not respond: try again when it does' },
}

export function controlSocketPath(stateDir: string): string {
  return join(stateDir, 'control.sock')
}

/**
 * Opens an HTTP server on a Unix socket that only the sidecar's own user (and root) can open: mode 0600 in a folder of
 * mode 0700. If that fails, `onFailure` is called and the sidecar serves its clients without it.
 */
export async function openControlSocket(
  stateDir: string,
  { tokens, requests, listening, onFailure }: ControlDependencies,
): Promise<ControlSocket> {
  async function execute(req: IncomingMessage): Promise<ControlResponse> {
    if (req.method === 'GET' && req.url === '/status') {
      const grants = await tokens.grants()
      return grants === 'unavailable'
        ? STORE_UNAVAILABLE
        : { status: 200, value: { listening: listening(), tokens: countsOf(grants), grants } }
    }
    if (req.method === 'GET' && req.url === '/requests')
      return { status: 200, value: { requests: requests.recent() } satisfies ListedRequests }
    if (req.method === 'GET' && req.url?.startsWith(EXPLAIN) === true) {
      const id = new URLSearchParams(req.url.slice(EXPLAIN.length)).get('id') ?? ''
      return {
        status: 200,
        value: {
          explanations: requests.explain(id),
          remembered: requests.remembered(),
        } satisfies Explained,
      }
    }
    if (req.method !== 'POST' || req.url !== '/revoke')
      return { status: 404, value: { error: 'unknown command' } }
    const which = readRevocation(await readText(req))
    if (which === undefined) {
      return {
        status: 400,
        value: { error: 'name what to revoke: {"all": true}, {"client": ADDRESS} or {"grant": ID}' },
      }
    }
    const revoked = await tokens.revoke(which, 'operator')
    return revoked === 'unavailable' ? STORE_UNAVAILABLE : { status: 200, value: { revoked } }
  }

  const server = createServer({ requestTimeout: 5_000 }, (req, res) => {
    execute(req)
      .catch((error: unknown) => {
        onFailure(error)
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
    onFailure(error)
  }
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function countsOf(grants: readonly GrantSummary[]): { readonly access: number; readonly refresh: number } {
  return {
    access: grants.reduce((sum, { accessTokens }) => sum + accessTokens, 0),
    refresh: grants.reduce((sum, { refreshTokens }) => sum + refreshTokens, 0),
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
