import { constants } from 'node:http2'
import { expect, it } from 'vitest'
import { FLAG, FRAME, frame, headers, requestFields } from '../support/http2-frames.ts'
import { rawSession } from '../support/http2-session.ts'
import { startSidecar } from '../support/sidecar.ts'

const data = (stream: number, text: string, flags = 0): Buffer =>
  frame(FRAME.data, flags, stream, Buffer.from(text))

it.each([
  ['in one frame', [data(1, 'abc', FLAG.endStream)]],
  ['in two frames', [data(1, 'ab'), data(1, 'c', FLAG.endStream)]],
  ['and goes on', [data(1, 'ab'), data(1, 'cde'), data(1, 'fgh'), data(1, 'i', FLAG.endStream)]],
  ['or that is shorter', [data(1, 'a', FLAG.endStream)]],
])(
  'H37 a body longer than its content-length ends the stream only (RFC 9113 §8.1.1): %s',
  async (_how, body) => {
    const sidecar = await startSidecar({ transport: 'h2' })
    const token = ['authorization', `Bearer ${await sidecar.token()}`]
    const session = await rawSession(sidecar.url)
    const post = requestFields([...token, 'content-length', '2'], { ':method': 'POST' })
    session.send(headers(1, post, false), ...body, headers(3, requestFields(token)))
    expect(await session.outcome(1)).toBe(constants.NGHTTP2_PROTOCOL_ERROR)
    expect(await session.status(3)).toBe(200)
    session.send(headers(5, requestFields(token)))
    expect(await session.status(5)).toBe(200)
    expect(session.farewell).toBeUndefined()
    session.raw.end()
  },
)
