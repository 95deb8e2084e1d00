import { type Head, type Line, type Model, model, response } from './firmware.ts'

/**
 * A management controller (Redfish) has room for four sessions. A login past them gets 503, until one is deleted.
 * https://github.com/stmcginnis/gofish/issues/75
 */
const SESSIONS = '/redfish/v1/SessionService/Sessions'

export const device: Model = model(import.meta, () => {
  const open = new Set<string>()
  let count = 0
  const answer = (head: Head): string => {
    const token = head.field('X-Auth-Token', 'i') ?? ''
    if (head.method === 'POST' && head.target === SESSIONS) {
      if (open.size === 4)
        return response('The maximum number of user sessions is reached', '', '503 Service Unavailable')
      count += 1
      open.add(`token-${count}`)
      const fields = `X-Auth-Token: token-${count}\r\nLocation: ${SESSIONS}/${count}\r\n`
      return response('{}', fields, '201 Created')
    }
    if (!open.has(token)) return response('', '', '401 Unauthorized')
    if (head.method === 'DELETE') open.delete(token)
    return response('ok')
  }
  return async (line: Line) => {
    for (let head = await line.head(); head !== undefined; head = await line.head()) {
      await line.body(Number(head.field('Content-Length', 'i') ?? 0))
      line.send(answer(head))
    }
  }
})
