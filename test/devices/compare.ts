import { deepStrictEqual } from 'node:assert'
import { createHash } from 'node:crypto'
import { passWhile } from '../fleet/passing.ts'
import { send } from '../support/client.ts'
import type { Request, Response } from '../support/message.ts'
import type { TestSidecar } from '../support/sidecar.ts'

/** The `Host` of the requests to the device and to the sidecar. */
const HOST = 'device.example'

/** The fields that the header policy removes or adds, and the time of day. */
const POLICY =
  /^(?:connection|keep-alive|transfer-encoding|upgrade|date|x-ratelimit-(?:limit|remaining|reset))$/i

/** A page that the device makes at once, such as that of a redirect or an error, is as old as its response. */
const TIME = /^last-modified$/i

/** The device itself gives no proper response, so there is nothing to compare. */
export class BrokenDevice extends Error {}

/**
 * Sends a request to the device directly and through the sidecar, compares the responses and returns the direct one.
 * Works outside of a test, too.
 */
export async function expectSame(
  device: string,
  sidecar: TestSidecar,
  token: string,
  request: Request,
): Promise<Response> {
  const asked = { authority: HOST, ...request }
  const direct = await send({
    transport: 'http1',
    url: device,
    ...asked,
    fields: directFields(request, sidecar),
  }).catch((error: unknown) => {
    throw new BrokenDevice(String(error))
  })
  const asking = sidecar.request({ token, ...asked })
  // The head of a body of unknown length goes ahead of it for some milliseconds.
  const through = await (Array.isArray(asked.body) ? passWhile([sidecar], asking) : asking)
  deepStrictEqual(
    { status: through.status, ...content(through) },
    { status: direct.status, ...content(direct) },
  )
  // HTTP/2 has no reason phrases.
  if (sidecar.transport !== 'h2') deepStrictEqual(through.reason, direct.reason)
  const ignored = direct.status >= 300 && direct.status !== 304 ? TIME : /^$/
  deepStrictEqual(
    endToEnd(through.fields, sidecar, ignored),
    endToEnd(publicAddresses(direct.fields, device, sidecar), sidecar, ignored),
  )
  deepStrictEqual(through.values('X-RateLimit-Limit').length, 1)
  return direct
}

/** Some devices name their own address in a page, with the port of the scheme that the proxy says. */
function directFields({ fields = [] }: Request, { transport }: TestSidecar): readonly string[] {
  return transport === 'http1' ? fields : [...fields, 'X-Forwarded-Proto', 'https']
}

/** The body, or what identifies a long one: a difference within it would fill the screen. */
function content({ body }: Response): { readonly length: number; readonly body: string } {
  const short = body.length < 1000 ? body.toString('latin1') : createHash('sha256').update(body).digest('hex')
  return { length: body.length, body: short }
}

/** The fields that must be equal, in order. */
function endToEnd(fields: readonly string[], { transport }: TestSidecar, ignored: RegExp): string[] {
  const kept: string[] = []
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = String(fields[i + 1]).replace(/nonce="\d+"/, 'nonce')
    if (!POLICY.test(name) && !ignored.test(name))
      kept.push(`${transport === 'h2' ? name.toLowerCase() : name}: ${value}`)
  }
  return kept
}

/** Applies the one change of values: a redirect to the device's own address leads to the public address. */
function publicAddresses(fields: readonly string[], device: string, sidecar: TestSidecar): string[] {
  const scheme = sidecar.transport === 'http1' ? 'http' : 'https'
  const { host, port } = new URL(device)
  const own = new RegExp(`^http://(?:${host}|${HOST}(?::${port})?)(?=/|$)`)
  return fields.map((value, i) =>
    i % 2 === 1 && /^(?:content-)?location$/i.test(fields[i - 1] ?? '')
      ? value.replace(own, `${scheme}://${HOST}`)
      : value,
  )
}
