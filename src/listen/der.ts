/** The tags of ASN.1 that certificates use. */
export const DER = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  text: 0x0c,
  utcTime: 0x17,
  time: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const

/** One element in DER (X.690): its tag, its length, its content. */
export function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const length = content.reduce((sum, part) => sum + part.length, 0)
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), ...content])
}

/** A bit string without unused bits, or with so many at its end. */
export function derBits(content: Uint8Array, unused = 0): Buffer {
  return der(DER.bits, Buffer.from([unused]), content)
}

/** An object identifier from its dotted form. */
export function derOid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return der(DER.oid, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f]
  for (let left = value >> 7; left > 0; left >>= 7) bytes.unshift((left & 0x7f) | 0x80)
  return bytes
}

/** A time in whole seconds: with two digits of the year until 2049 (RFC 5280 §4.1.2.5). */
export function derTime(time: Date): Buffer {
  const digits = time.toISOString().replace(/\.\d+|[-:T]/g, '')
  return time.getUTCFullYear() < 2050
    ? der(DER.utcTime, Buffer.from(digits.slice(2)))
    : der(DER.time, Buffer.from(digits))
}

/** The elements of a sequence, each with its tag and length. For DER that OpenSSL has accepted. */
export function elementsOf(sequence: Buffer): readonly Buffer[] {
  const elements: Buffer[] = []
  for (let at = contentOf(sequence, 0).start; at < sequence.length; ) {
    const { end } = contentOf(sequence, at)
    elements.push(sequence.subarray(at, end))
    at = end
  }
  return elements
}

function contentOf(bytes: Buffer, at: number): { readonly start: number; readonly end: number } {
  const first = bytes[at + 1] ?? 0
  const digits = first < 0x80 ? 0 : first & 0x7f
  const start = at + 2 + digits
  return { start, end: start + (digits === 0 ? first : bytes.readUIntBE(at + 2, digits)) }
}
