import type { Fields } from '../../http/fields.ts'
import type { Connection, Connections } from '../connections.ts'
import { DeviceFault, failureOf } from '../failure.ts'
import type { Answer, Ask, OwnRequest } from './scheme.ts'

/**
 * Sends the sidecar's own requests to the device. `fields`: what every request to it carries. A kept connection that
 * turns out to be closed is tried once more; the failures are `DeviceFault`s, which say nothing of what was sent.
 */
export function createAsk(connections: Connections, fields: () => Fields): Ask {
  async function attempt(
    request: OwnRequest,
    mayRepeat: boolean,
  ): Promise<Answer | { readonly stale: boolean; error: unknown }> {
    const connection = connections.borrow(mayRepeat)
    try {
      const answer = await send(connection, request, fields())
      connection.release(true)
      return answer
    } catch (error) {
      const stale = connection.reused && failureOf(error) === 'connection_terminated'
      connection.release(false)
      return { stale, error }
    }
  }

  return async (request) => {
    let result = await attempt(request, true)
    if ('error' in result && result.stale) result = await attempt(request, false)
    if ('error' in result) throw new DeviceFault(failureOf(result.error))
    return result
  }
}

async function send(
  { dispatcher }: Connection,
  { method, target, fields, body }: OwnRequest,
  common: Fields,
): Promise<Answer> {
  const own = new Set(fields.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()))
  const rest = common.filter((_, i) => !own.has(common[i - (i % 2)]?.toLowerCase() ?? ''))
  const response = await dispatcher.request({
    path: target,
    method,
    headers: [...rest, ...fields],
    body: body ?? null,
  })
  // Nobody reads the page; what is too long to be read off the connection ends it.
  await response.body.dump()
  return { status: response.statusCode, fields: flat(response.headers) }
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Fields {
  return Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().flatMap((each) => [name, each]),
  )
}
