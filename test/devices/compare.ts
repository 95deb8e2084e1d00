import { expect } from 'vitest'
import { send } from '../support/client.ts'
import type { Request, Response } from '../support/message.ts'
import type { TestSidecar } from '../support/sidecar.ts'

/** The `Host` of the requests to the device and to the sidecar. */
const HOST = 'device.example'

/** The fields that the header policy removes or adds, and the time of day. */
const POLICY =
  /^(?:connection|keep-alive|transfer-encoding|upgrade|date|x-ratelimit-(?:limit|remaining|reset))$/i

/** Sends a request to the device directly and through the sidecar, compares the responses and returns the direct one. */
export async function expectSame(
  device: string,
  sidecar: TestSidecar,
  token: string,
  request: Request,
): Promise<Response> {
  const asked = { authority: HOST, ...request }
  const direct = await send({ transport: 'http1', url: device, ...asked })
  const through = await sidecar.request({ token, ...asked })
  expect({ status: through.status, ...content(through) }).toEqual({
    status: direct.status,
    ...content(direct),
  })
  // HTTP/2 has no reason phrases.
  if (sidecar.transport !== 'h2') expect(through.reason).toBe(direct.reason)
  expect(endToEnd(through.fields, sidecar)).toEqual(
    endToEnd(publicAddresses(direct.fields, device, sidecar), sidecar),
  )
  expect(through.values('X-RateLimit-Limit')).toHaveLength(1)
  return direct
}

function content({ body }: Response): { readonly length: number; readonly body: string } {
  return { length: body.length, body: body.toString('latin1') }
}

/** The fields that must be equal, in order. */
function endToEnd(fields: readonly string[], { transport }: TestSidecar): string[] {
  const kept: string[] = []
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    if (!POLICY.test(name)) kept.push(`${transport === 'h2' ? name.toLowerCase() : name}: ${fields[i + 1]}`)
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
