import { createCipheriv, createHmac } from 'node:crypto'

/** What TLS 1.3 derives the keys of one direction from: the last word of the client's line in the key log. */
const SECRET = /^CLIENT_TRAFFIC_SECRET_0 \S+ (\S+)/

/** The secret of what the client sends, of a line of the event `keylog`; undefined for other lines. */
export function clientSecretIn(line: Buffer): Buffer | undefined {
  const hex = SECRET.exec(line.toString('latin1'))?.[1]
  return hex === undefined ? undefined : Buffer.from(hex, 'hex')
}

/**
 * Application data in records of one byte each, as bytes for the TCP connection: Node joins what is written at once. For the suite
 * TLS_AES_128_GCM_SHA256 (RFC 8446 §5.2, §7.3).
 *
 * @param from the number of records that the client has sent with this secret
 */
export function recordsOfOneByte(secret: Buffer, text: Buffer, from: number): Buffer {
  const key = expand(secret, 'key', 16)
  const iv = expand(secret, 'iv', 12)
  const head = Buffer.from([0x17, 3, 3, 0, 1 + 1 + TAG])
  const inner = Buffer.from([0, APPLICATION_DATA])
  const records: Buffer[] = []
  for (const [at, byte] of text.entries()) {
    const nonce = Buffer.from(iv)
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ (from + at)) >>> 0, 8)
    const cipher = createCipheriv('aes-128-gcm', key, nonce).setAAD(head)
    inner[0] = byte
    records.push(head, cipher.update(inner), cipher.final(), cipher.getAuthTag())
  }
  return Buffer.concat(records)
}

const TAG = 16
const APPLICATION_DATA = 0x17

/** HKDF-Expand-Label (RFC 8446 §7.1) without a context, of one block. Node's own HKDF extracts first. */
function expand(secret: Buffer, label: string, length: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`, 'latin1')
  const info = Buffer.concat([Buffer.from([0, length, name.length]), name, Buffer.from([0])])
  return createHmac('sha256', secret)
    .update(info)
    .update(Buffer.from([1]))
    .digest()
    .subarray(0, length)
}
