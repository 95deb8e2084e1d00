import code from 'undici/lib/llhttp/llhttp-wasm.js'

/**
 * What a parser is told while it reads. Positions are those in the bytes given to `execute`; what crosses from one
 * piece of input to the next is told in two parts.
 */
export interface ParserEvents {
  onReason(start: number, end: number): void
  onName(start: number, end: number): void
  onValue(start: number, end: number): void
  /** Whether the message has no body, whatever its header says. */
  onHead(status: number, keepsAlive: boolean): boolean
  onBody(start: number, end: number): void
  onEnd(): void
}

/** How far the parser came: to the end of the message, or of the input, or not even there. */
export type Progress = 'more' | 'ended' | 'malformed'

/** `plain`: all of the input is a body that is not chunked: llhttp only counts it. `framed`: anything else behind a head. */
export type Stage = 'head' | 'framed' | 'plain'

/** One message after another, as llhttp reads them: strictly. It must be closed, because its memory is not collected. */
export interface Llhttp {
  /** Forgets all that it has read. */
  reset(): void
  /** Reads `bytes` from `start` to `end`, not beyond the end of the message. `stage` is that of their first byte. */
  execute(bytes: Uint8Array, start: number, end: number, stage: Stage): Progress
  /** Where the last `execute` that `ended` stopped. */
  readonly stoppedAt: number
  /** No more input will come: this ends a message that only the end of the connection can end. */
  finish(): void
  close(): void
}

type Address = number

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly malloc: (size: number) => Address
  readonly llhttp_alloc: (type: number) => Address
  readonly llhttp_free: (parser: Address) => void
  readonly llhttp_reset: (parser: Address) => void
  readonly llhttp_execute: (parser: Address, data: Address, length: number) => number
  readonly llhttp_finish: (parser: Address) => number
  readonly llhttp_get_error_pos: (parser: Address) => Address
}

const RESPONSE = 2
const OK = 0
const PAUSED = 21
const SKIP_BODY = 1

/** Input is copied in pieces of so many bytes. */
const LARGEST_INPUT = 64 * 1024

const TAB = 0x09
const SPACE = 0x20

/** The one that is executing, and what to add to an address to have a position in its input. */
let current: ParserEvents | undefined
let offset = 0

const IMPORTS = {
  wasm_on_url: () => OK,
  wasm_on_message_begin: () => OK,
  wasm_on_status(_: Address, at: Address, length: number) {
    current?.onReason(at + offset, at + offset + length)
    return OK
  },
  wasm_on_header_field(_: Address, at: Address, length: number) {
    current?.onName(at + offset, at + offset + length)
    return OK
  },
  wasm_on_header_value(_: Address, at: Address, length: number) {
    current?.onValue(at + offset, at + offset + length)
    return OK
  },
  wasm_on_headers_complete: (_: Address, status: number, _upgrade: number, keepsAlive: number) =>
    current?.onHead(status, keepsAlive === 1) ? SKIP_BODY : OK,
  wasm_on_body(_: Address, at: Address, length: number) {
    current?.onBody(at + offset, at + offset + length)
    return OK
  },
  wasm_on_message_complete() {
    current?.onEnd()
    return PAUSED
  },
}

/** One instance for all parsers: they share its code, its memory, and the place for their input. */
interface Machine {
  readonly exports: Exports
  readonly input: Address
  /** Changes when the memory grows. */
  bytes: Uint8Array
}

let machine: Machine | undefined

function start(): Machine {
  const instance = new WebAssembly.Instance(new WebAssembly.Module(code), { env: IMPORTS })
  // What undici's build of llhttp exports; the version of undici is pinned.
  const exports = instance.exports as unknown as Exports
  return { exports, input: exports.malloc(LARGEST_INPUT + 1), bytes: new Uint8Array(exports.memory.buffer) }
}

/** A parser of responses that tells `events` what it reads. They must not fail, nor start another parser. */
export function createLlhttp(events: ParserEvents): Llhttp {
  machine ??= start()
  const { exports, input } = machine
  const shared = machine
  const parser = exports.llhttp_alloc(RESPONSE)
  let stoppedAt = 0

  function copy({ buffer, byteOffset }: Uint8Array, start: number, length: number): void {
    // Detached where the memory has grown.
    if (shared.bytes.length === 0) shared.bytes = new Uint8Array(exports.memory.buffer)
    shared.bytes.set(new Uint8Array(buffer, byteOffset + start, length), input)
  }

  /**
   * Replaces tabs by spaces in the copy of a head. Both are blanks (RFC 9110 §5.6.3), but llhttp does not recognise `chunked`,
   * a length or `close` with a tab behind it. Elsewhere it treats both alike, except in the status line (`isStatusLine`).
   * Values are not read from this copy.
   */
  function blankTabs(length: number): void {
    const { bytes } = shared
    const end = input + length
    // A sentinel behind the input: the search ends there.
    bytes[end] = TAB
    for (let at = bytes.indexOf(TAB, input); at < end; at += 1) if (bytes[at] === TAB) bytes[at] = SPACE
  }

  return {
    get stoppedAt() {
      return stoppedAt
    },
    reset: () => exports.llhttp_reset(parser),
    execute(bytes, start, end, stage) {
      for (let from = start; from < end; from += LARGEST_INPUT) {
        const length = Math.min(end - from, LARGEST_INPUT)
        if (stage !== 'plain') copy(bytes, from, length)
        if (stage === 'head') blankTabs(length)
        current = events
        offset = from - input
        const result = exports.llhttp_execute(parser, input, length)
        current = undefined
        if (result === PAUSED) {
          stoppedAt = exports.llhttp_get_error_pos(parser) + offset
          return 'ended'
        }
        if (result !== OK) return 'malformed'
      }
      return 'more'
    },
    finish() {
      current = events
      exports.llhttp_finish(parser)
      current = undefined
    },
    close: () => exports.llhttp_free(parser),
  }
}
