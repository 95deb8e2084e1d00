import { FLAG, FRAME, type Frame, PREFACE, readFrames, SETTING, settings, statusOf } from './http2-frames.ts'
import { type RawPeer, rawConnection } from './raw.ts'

/** An HTTP/2 connection whose frames are written by hand. */
export interface RawSession {
  readonly raw: RawPeer
  /** Every complete frame received so far. */
  readonly frames: readonly Frame[]
  send(...frames: readonly Buffer[]): void
  /** Waits for a frame for which `fits` holds, including those that have arrived. */
  waitFor(fits: (frame: Frame) => boolean): Promise<Frame>
  /** Waits for the response head of a stream and resolves with its status. */
  status(stream: number): Promise<number>
  /** Waits until the stream is over: `end` for END_STREAM, or the error code of its reset. */
  outcome(stream: number): Promise<'end' | number>
  /** The error code of the last GOAWAY, if one has arrived. */
  readonly farewell: number | undefined
  /** Resolves when the connection is closed, cleanly or not. */
  readonly closed: Promise<unknown>
}

/**
 * Opens an HTTP/2 connection by hand. It sends the preface and, unless `opening` replaces it, SETTINGS with a dynamic
 * table of size 0, because `status` cannot read fields of that table.
 */
export async function rawSession(
  url: string,
  options: { readonly opening?: readonly Buffer[]; readonly from?: string } = {},
): Promise<RawSession> {
  const raw = await rawConnection(url, {
    alpn: ['h2'],
    ...(options.from === undefined ? {} : { localAddress: options.from }),
  })
  const frames: Frame[] = []
  let rest: Buffer = Buffer.alloc(0)
  const looks = new Set<() => void>()
  const wake = (): void => {
    for (const look of looks) look()
  }
  raw.socket.on('data', (chunk: Buffer) => {
    const received = Buffer.concat([rest, chunk])
    const read = readFrames(received)
    frames.push(...read.frames)
    rest = received.subarray(received.length - read.rest)
    wake()
  })
  raw.socket.once('close', wake)
  raw.write(Buffer.concat([PREFACE, ...(options.opening ?? [settings([SETTING.headerTableSize, 0])])]))

  const session: RawSession = {
    raw,
    frames,
    send: (...more) => raw.write(Buffer.concat(more)),
    waitFor(fits) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          const found = frames.find(fits)
          if (found === undefined && !raw.socket.destroyed) return
          looks.delete(look)
          if (found !== undefined) resolve(found)
          else reject(new Error(`the connection closed; frames: ${JSON.stringify(frames)}`))
        }
        looks.add(look)
        look()
      })
    },
    async status(stream) {
      const head = await session.waitFor((got) => got.stream === stream && got.type === FRAME.headers)
      return statusOf(head.payload) ?? 0
    },
    async outcome(stream) {
      const last = await session.waitFor(
        (got) =>
          got.stream === stream &&
          (got.type === FRAME.resetStream ||
            ((got.type === FRAME.data || got.type === FRAME.headers) && (got.flags & FLAG.endStream) !== 0)),
      )
      return last.type === FRAME.resetStream ? last.payload.readUInt32BE(0) : 'end'
    },
    get farewell() {
      const found = frames.filter(({ type }) => type === FRAME.goaway).at(-1)
      return found?.payload.readUInt32BE(4)
    },
    closed: raw.closed,
  }
  return session
}
