import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { reasonOf } from './setup-error.ts'

/** A file that should contain PEM (RFC 7468). `text` is its content decoded as UTF-8, also if it is binary. */
export interface PemFile {
  readonly path: string
  readonly text: string
}

export type Certificates = readonly [X509Certificate, ...X509Certificate[]]

/**
 * The certificates of a file, in order; or a message that names the file and its fault, without its content. OpenSSL alone would not report
 * an empty file, or a file that is cut off within a BEGIN line: it would read fewer certificates.
 */
export function certificatesIn(file: PemFile): Certificates | string {
  const blocks = blocksIn(file, CERTIFICATE)
  if (typeof blocks === 'string') return blocks
  const certificates: X509Certificate[] = []
  for (const { text } of blocks) {
    try {
      certificates.push(new X509Certificate(text))
    } catch (error) {
      return `${certificateName(certificates.length, blocks.length, file.path)} is damaged: ${reasonOf(error)}`
    }
  }
  const [first, ...others] = certificates
  return first === undefined ? holdsNone(file, CERTIFICATE) : [first, ...others]
}

/** The first private key of a file; or a message that names the file and its fault, without its content. */
export function privateKeyIn(file: PemFile): KeyObject | string {
  const { path } = file
  const blocks = blocksIn(file, PRIVATE_KEY)
  if (typeof blocks === 'string') return blocks
  const [first] = blocks
  if (first === undefined) return holdsNone(file, PRIVATE_KEY)
  if (first.label.startsWith('ENCRYPTED') || /^Proc-Type:.*ENCRYPTED/m.test(first.text)) {
    return `${path} holds an encrypted key, and Postern cannot ask for its passphrase: decrypt it with openssl pkey -in ${path} -out NEW`
  }
  try {
    return createPrivateKey(first.text)
  } catch (error) {
    return `the private key in ${path} is damaged or of an unknown kind: ${reasonOf(error)}`
  }
}

/** The name of a certificate in messages, by its index in the file. */
export function certificateName(index: number, count: number, path: string): string {
  return count === 1 ? `the certificate in ${path}` : `certificate ${index + 1} of ${count} in ${path}`
}

interface Content {
  readonly what: string
  readonly label: RegExp
  /** OpenSSL commands that convert the binary forms to PEM. */
  readonly fromDer: string
  readonly fromPkcs12: string
}

const CERTIFICATE: Content = {
  what: 'certificate',
  label: /^(?:X509 |TRUSTED )?CERTIFICATE$/,
  fromDer: 'openssl x509 -inform der',
  fromPkcs12: 'openssl pkcs12 -nokeys',
}

const PRIVATE_KEY: Content = {
  what: 'private key',
  label: /PRIVATE KEY$/,
  fromDer: 'openssl pkey -inform der',
  fromPkcs12: 'openssl pkcs12 -nocerts -nodes',
}

interface Block {
  readonly label: string
  readonly text: string
}

/** One PEM block. Windows programs may write a byte order mark before the text. */
const BLOCK = /^\uFEFF?-----BEGIN ([^-\r\n]+)-----(?:(?!-----)[\s\S])*?^-----END \1-----[ \t]*$/gm

/** The blocks of one kind in a file; or a message that says why the file is not complete PEM. */
function blocksIn(
  { path, text }: PemFile,
  { label, fromDer, fromPkcs12 }: Content,
): readonly Block[] | string {
  // After a power failure some file systems return zeros for data that was not flushed.
  if (text.replaceAll('\0', '').trim() === '') return `${path} is empty`
  if (isDer(text)) {
    const [kind, command] = isPkcs12(text) ? ['PKCS #12', fromPkcs12] : ['DER', fromDer]
    return `${path} is binary (${kind}) and must be PEM: convert it with ${command} -in ${path} -out NEW`
  }
  if (/-----END [^-\r\n]+-----[ \t]*\S/.test(text))
    return `${path} lacks a line break behind an -----END line`
  // A truncated file ends with a block without its END line, or within the dashes of a line.
  const between = text.replaceAll(BLOCK, '')
  if (/^-----/m.test(between) || /(?:^|[\r\n])-+$/.test(between)) {
    return `${path} is incomplete, as after an interrupted copy or on a full disk`
  }
  return Array.from(text.matchAll(BLOCK), ([block, name = '']) => ({ label: name, text: block })).filter(
    (block) => label.test(block.label),
  )
}

function holdsNone({ path, text }: PemFile, { what }: Content): string {
  const others = new Set(Array.from(text.matchAll(BLOCK), ([, label]) => label))
  return `${path} holds no ${what} in PEM${others.size === 0 ? '' : `, but: ${[...others].join(', ')}`}`
}

/** Whether the content is DER: it begins with a SEQUENCE (0x30, the digit 0) and its length, whose bytes are not text. */
function isDer(text: string): boolean {
  return text.startsWith('0') && !/^0[\t\r\n -~]{2}/.test(text)
}

/** Whether DER is PKCS #12: it begins with its version, 3 (RFC 7292 §4). Keys have 0 or 1 there, and certificates have no number. */
function isPkcs12(text: string): boolean {
  return text.slice(2, 8).includes('\x02\x01\x03')
}
