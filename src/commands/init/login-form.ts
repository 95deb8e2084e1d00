import type { YamlMapping } from '../../config/yaml.ts'
import type { OwnResponse } from '../../device/own-request.ts'
import { fieldValues } from '../../http/fields.ts'

/** A login form on a page of the device. */
export interface LoginForm {
  /** The path of the page that shows it. */
  readonly page: string
  /** `login` of `upstream.auth.session`. `$user` and `$password` stand for what a person types. */
  readonly login: YamlMapping
  /** The names of the fields for the user, if there is one, and the password. */
  readonly typed: readonly string[]
  /** A page that leads to the form without a login. */
  readonly checkPath?: string | undefined
}

/** The device, as far as the search needs it. */
interface Site {
  /** Scheme, host and port. */
  readonly origin: string
  /** Requests a path, with the body of its response. */
  readonly get: (target: string) => Promise<OwnResponse>
}

/** The most redirects to the page with the form. */
const MOST_REDIRECTS = 3

/**
 * The login form to which the device leads a browser that opens `start`. Undefined without a form that Postern can send as it stands: one that
 * is posted to the device itself, asks for a user and a password at most, and has the same hidden values for each visitor.
 */
export async function findLoginForm(site: Site, start: string): Promise<LoginForm | undefined> {
  let target = start
  let redirected: string | undefined
  for (let hops = 0; hops <= MOST_REDIRECTS; hops += 1) {
    const response = await site.get(target)
    const page = `${site.origin}${target}`
    const form = formIn(response, page)
    if (form !== undefined) {
      const again = formIn(await site.get(target), page)
      const isFixed = JSON.stringify(again) === JSON.stringify(form)
      return isFixed ? { ...form, checkPath: response.status === 401 ? target : redirected } : undefined
    }
    const isMoved = response.status >= 300 && response.status < 400
    const link = isMoved ? fieldValues(response.fields, 'location')[0] : refreshIn(tagsIn(response))
    const next = onDevice(link, page)
    if (next === undefined) return undefined
    // Only a redirect tells Postern later that it has to sign in.
    redirected = isMoved ? target : undefined
    target = next
  }
  return undefined
}

/** The path and query of a link on a page, if it leads to the device itself, by the same scheme. */
function onDevice(link: string | undefined, page: string): string | undefined {
  const url = link === undefined ? null : URL.parse(link, page)
  return url === null || url.origin !== new URL(page).origin ? undefined : `${url.pathname}${url.search}`
}

interface Tag {
  readonly name: string
  readonly attributes: ReadonlyMap<string, string>
}

const TAGS = /<(\/?(?:form|input|button|meta))\b((?:[^<>"']|"[^"]*"|'[^']*'){0,2000})>/gi
const ATTRIBUTES = /([^\s=/"'<>]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+)))?/g

/** The tags of forms in a page, without those in comments and scripts. */
function tagsIn({ body }: OwnResponse): readonly Tag[] {
  const shown = String(body ?? '').replace(/<!--.*?-->|<(script|style)\b.*?<\/\1\s*>/gis, '')
  return [...shown.matchAll(TAGS)].map(([, name = '', rest = '']) => ({
    name: name.toLowerCase(),
    attributes: new Map(
      [...rest.matchAll(ATTRIBUTES)].map(([, key = '', ...values]) => [
        key.toLowerCase(),
        unescaped(values.find((value) => value !== undefined) ?? ''),
      ]),
    ),
  }))
}

const NAMED: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
])

const LAST_CODE_POINT = 0x10ffff

/** Replaces the character references of HTML: numbers, and the names of the characters that HTML itself uses. */
function unescaped(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi,
    (whole, decimal: string | undefined, hex = '', name = '') => {
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
      return code <= LAST_CODE_POINT ? String.fromCodePoint(code) : (NAMED.get(name) ?? whole)
    },
  )
}

function refreshIn(tags: readonly Tag[]): string | undefined {
  const refresh = tags.find(
    ({ name, attributes }) => name === 'meta' && /^refresh$/i.test(attributes.get('http-equiv') ?? ''),
  )
  return /^\s*\d+\s*[;,]\s*url\s*=\s*["']?([^"']+)/i.exec(refresh?.attributes.get('content') ?? '')?.[1]
}

/**
 * The first form of a page that asks for one password.
 *
 * @param page the URL of the page
 */
function formIn(response: OwnResponse, page: string): LoginForm | undefined {
  const tags = tagsIn(response)
  for (const [begin, tag] of tags.entries()) {
    if (tag.name !== 'form') continue
    const end = tags.findIndex(({ name }, at) => at > begin && /^\/?form$/.test(name))
    const found = readForm(tag, tags.slice(begin + 1, end < 0 ? undefined : end), page)
    if (found !== undefined) return found
  }
  return undefined
}

function readForm({ attributes }: Tag, inner: readonly Tag[], page: string): LoginForm | undefined {
  const own = onDevice('', page) ?? '/'
  const action = onDevice(attributes.get('action') ?? '', page)
  const isPosted = /^post$/i.test(attributes.get('method') ?? '')
  const isEncoded = /^(?:application\/x-www-form-urlencoded)?$/i.test(attributes.get('enctype') ?? '')
  if (action === undefined || !isPosted || !isEncoded) return undefined
  const fields = inner.map(fieldIn).filter((field) => field !== undefined)
  // A browser sends the button that is pressed, and no other.
  const [pressed] = fields.filter(({ isButton }) => isButton)
  const sent = fields.filter((field) => !field.isButton || field === pressed)
  const typed = sent.filter(({ value }) => value.startsWith('$'))
  const passwords = typed.filter(({ value }) => value === '$password').length
  if (passwords !== 1 || typed.length > 2) return undefined
  const form = Object.fromEntries(sent.map(({ name, value }) => [name, value]))
  return {
    page: own,
    login: { path: action, ...(action === own ? {} : { page: own }), form },
    typed: typed.map(({ name }) => name),
  }
}

interface FormField {
  readonly name: string
  /** `$user` and `$password` stand for what a person types. */
  readonly value: string
  readonly isButton: boolean
}

/** A field that a browser sends with the form as it stands; undefined for a tag that adds none. */
function fieldIn({ name: tag, attributes }: Tag): FormField | undefined {
  const [name = '', value] = [attributes.get('name'), attributes.get('value')]
  if (name === '' || attributes.has('disabled') || !/^(?:input|button)$/.test(tag)) return undefined
  const type = (attributes.get('type') ?? (tag === 'button' ? 'submit' : 'text')).toLowerCase()
  switch (type) {
    case 'password':
      return { name, value: '$password', isButton: false }
    case 'text':
    case 'email':
    case 'tel':
      return { name, value: '$user', isButton: false }
    case 'hidden':
      return { name, value: value ?? '', isButton: false }
    case 'checkbox':
    case 'radio':
      return attributes.has('checked') ? { name, value: value ?? 'on', isButton: false } : undefined
    case 'submit':
      return { name, value: value ?? '', isButton: true }
    default:
      return undefined
  }
}
