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
  const { origin } = new URL(site.origin)
  let target = start
  let redirected: string | undefined
  for (let hops = 0; hops <= MOST_REDIRECTS; hops += 1) {
    const response = await site.get(target)
    const url = `${origin}${target}`
    const page = pageIn(response, url)
    const form = formIn(page)
    if (form !== undefined) {
      const again = formIn(pageIn(await site.get(target), url))
      const isFixed = JSON.stringify(again) === JSON.stringify(form)
      return isFixed ? { ...form, checkPath: response.status === 401 ? target : redirected } : undefined
    }
    const isMoved = response.status >= 300 && response.status < 400
    const next = isMoved
      ? onDevice(fieldValues(response.fields, 'location')[0], url, origin)
      : onDevice(refreshIn(page), page.base, origin)
    if (next === undefined) return undefined
    // Only a redirect tells Postern later that it has to sign in.
    redirected = isMoved ? target : undefined
    target = next
  }
  return undefined
}

/** The path and query of a link, if it leads to the device itself, by the same scheme. `base`: the URL to which it is relative. */
function onDevice(link: string | undefined, base: string, origin: string): string | undefined {
  const url = link === undefined ? null : URL.parse(link, base)
  return url?.origin === origin ? `${url.pathname}${url.search}` : undefined
}

interface Tag {
  readonly name: string
  readonly attributes: ReadonlyMap<string, string>
}

/** A page of the device, as far as the search needs it. */
interface Page {
  readonly url: string
  /** The URL to which its links are relative: that of the first `<base href>`, or its own (HTML §2.4.3). */
  readonly base: string
  readonly tags: readonly Tag[]
}

function pageIn(response: OwnResponse, url: string): Page {
  const tags = tagsIn(response)
  const base = tags.find(({ name, attributes }) => name === 'base' && attributes.has('href'))
  return { url, base: URL.parse(base?.attributes.get('href') ?? '', url)?.href ?? url, tags }
}

const TAGS = /<(\/?(?:form|input|button|meta|base))(?=[\s/>])((?:[^<>"']|"[^"]*"|'[^']*'){0,2000})>/gi
const ATTRIBUTES = /([^\s=/"'<>]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+)))?/g

/**
 * Comments and scripts. One without its end takes the rest of the page, as in browsers. Otherwise the search would start again behind each
 * `<!--`, which takes seconds for a page of 128 KB (ReDoS).
 */
const HIDDEN = /<!--(?:-?>|.*?(?:-->|$))|<(script|style)(?=[\s/>]).*?(?:<\/\1\s*>|$)/gis

/** The tags of forms in a page, without those in comments and scripts. */
function tagsIn({ body }: OwnResponse): readonly Tag[] {
  const shown = String(body ?? '').replace(HIDDEN, '')
  return [...shown.matchAll(TAGS)].map(([, name = '', rest = '']) => ({
    name: name.toLowerCase(),
    // Of two attributes with one name, the first counts.
    attributes: new Map(
      [...rest.matchAll(ATTRIBUTES)]
        .reverse()
        .map(([, key = '', ...values]) => [
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

function refreshIn({ tags }: Page): string | undefined {
  const refresh = tags.find(
    ({ name, attributes }) => name === 'meta' && /^refresh$/i.test(attributes.get('http-equiv') ?? ''),
  )
  return /^\s*\d+\s*[;,]\s*url\s*=\s*["']?([^"']+)/i.exec(refresh?.attributes.get('content') ?? '')?.[1]
}

/** The first form of a page that asks for one password. */
function formIn(page: Page): LoginForm | undefined {
  const { tags } = page
  for (const [begin, tag] of tags.entries()) {
    if (tag.name !== 'form') continue
    const end = tags.findIndex(({ name }, at) => at > begin && /^\/?form$/.test(name))
    const found = readForm(tag, tags.slice(begin + 1, end < 0 ? undefined : end), page)
    if (found !== undefined) return found
  }
  return undefined
}

function readForm(form: Tag, inner: readonly Tag[], { url, base }: Page): LoginForm | undefined {
  const { pathname, search, origin } = new URL(url)
  const own = `${pathname}${search}`
  const fields = inner.map(fieldIn).filter((field) => field !== undefined)
  // Enter presses the first button. A browser sends no other, and what the button says about the form takes the place of what the form says.
  const pressed = fields.find(({ isButton }) => isButton)
  const setting = (name: string): string =>
    pressed?.attributes.get(`form${name}`) ?? form.attributes.get(name) ?? ''
  // Without an action the form is sent to its page, whatever the base (HTML §4.10.21.3).
  const action = onDevice(setting('action') || url, base, origin)
  const isPosted = /^post$/i.test(setting('method'))
  const isEncoded = /^(?:application\/x-www-form-urlencoded)?$/i.test(setting('enctype'))
  if (action === undefined || !isPosted || !isEncoded) return undefined
  const sent = fields.filter((field) => field.name !== '' && (!field.isButton || field === pressed))
  const typed = sent.filter(({ value }) => value.startsWith('$'))
  const passwords = typed.filter(({ value }) => value === '$password').length
  if (passwords !== 1 || typed.length > 2) return undefined
  const values = Object.fromEntries(sent.map(({ name, value }) => [name, value]))
  return {
    page: own,
    login: { path: action, ...(action === own ? {} : { page: own }), form: values },
    typed: typed.map(({ name }) => name),
  }
}

interface FormField extends Pick<Tag, 'attributes'> {
  /** Empty: the field is not sent. */
  readonly name: string
  /** `$user` and `$password` stand for what a person types. */
  readonly value: string
  readonly isButton: boolean
}

/** A field or button of a form as it stands; undefined for any other tag. */
function fieldIn({ name: tag, attributes }: Tag): FormField | undefined {
  const [name = '', value] = [attributes.get('name'), attributes.get('value')]
  if (attributes.has('disabled') || !/^(?:input|button)$/.test(tag)) return undefined
  const field = { name, attributes, isButton: false }
  const type = (attributes.get('type') ?? (tag === 'button' ? 'submit' : 'text')).toLowerCase()
  switch (type) {
    case 'password':
      return { ...field, value: '$password' }
    case 'text':
    case 'email':
    case 'tel':
      return { ...field, value: '$user' }
    case 'hidden':
      return { ...field, value: value ?? '' }
    case 'checkbox':
    case 'radio':
      return attributes.has('checked') ? { ...field, value: value ?? 'on' } : undefined
    case 'submit':
      return { ...field, value: value ?? '', isButton: true }
    default:
      return undefined
  }
}
