import { OWN_PATHS } from '../http/admission.ts'
import type { Fields } from '../http/fields.ts'
import { documentOf, escapeHtml, htmlResponse } from '../http/html.ts'
import { languageOf } from '../http/language.ts'
import type { LocalResponse } from '../http/refusal.ts'

/** What a page of the login shows. */
export interface LoginPage {
  readonly realm: string
  /** Default: the realm. */
  readonly title?: string
  /** The name under which password managers keep the password; default: the realm. */
  readonly username?: string
  /** The value of `Accept-Language`. */
  readonly languages?: string | undefined
  /** In place of the words of the language. They are HTML. */
  readonly words?: Partial<Words>
  readonly message: LoginMessage | undefined
  /**
   * What the user can do: log in with a form, log out with a form, or follow a link. `to`: the address of the login form or of the link.
   * Undefined: nothing.
   */
  readonly action:
    | { readonly kind: 'form' | 'link-to-login' | 'link-to-device'; readonly to: string }
    | { readonly kind: 'logout' }
    | undefined
  /** HTML below the action. */
  readonly note?: string
  /** The address of the icon; default: none. `pageResponse` cannot show one: its policy allows `data:` only. */
  readonly icon?: string
}

/** A page of the login as a response. `more`: further fields. `head`: further elements of its head. */
export function pageResponse(status: number, page: LoginPage, more: Fields = [], head = ''): LocalResponse {
  return htmlResponse(status, loginDocument(page, head), more)
}

/** A page of the login in HTML, in the language of the browser. `head`: further elements of its head. */
export function loginDocument(
  { realm, title = realm, username = realm, languages, message, action, note, icon, ...own }: LoginPage,
  head = '',
): string {
  const language = languageOf(WORDS, languages)
  const words: Words = { ...(WORDS[language] ?? WORDS.en), ...own.words }
  const main = [`<h1>${escapeHtml(realm)}</h1>`]
  if (message !== undefined)
    main.push(`<p id="message" role="${isNews(message) ? 'status' : 'alert'}">${words[message]}</p>`)
  if (action !== undefined) main.push(actionOf(action, username, message, words))
  if (note !== undefined) main.push(`<p class="small">${note}</p>`)
  return documentOf({ language, title: escapeHtml(title), head, icon, main: main.join('\n') })
}

/** Whether a message is a status, not an alarm. */
function isNews(message: LoginMessage): boolean {
  return message === 'out' || message === 'ended' || message === 'foreign'
}

function actionOf(
  action: NonNullable<LoginPage['action']>,
  username: string,
  message: LoginMessage | undefined,
  words: Words,
): string {
  const { kind } = action
  if (kind === 'logout') return formOf(OWN_PATHS.logout, '', words.logout)
  if (kind === 'link-to-login') return linkOf(action.to, words.login)
  if (kind === 'link-to-device') return linkOf(action.to, words.open)
  // A screen reader reads the field that has the focus when the page opens, but no alert that was there before.
  const described = message === undefined ? '' : ' aria-describedby="message"'
  const wrong = message === 'wrong' ? ' aria-invalid="true"' : ''
  const password = `
<input type="text" autocomplete="username" value="${escapeHtml(username)}" readonly hidden>
<label for="password">${words.password}</label>
<input id="password" name="password" type="password" autocomplete="current-password" required autofocus${described}${wrong}>`
  return formOf(action.to, password, words.login)
}

function linkOf(to: string, text: string): string {
  return `<a href="${escapeHtml(to)}">${text}</a>`
}

function formOf(action: string, inputs: string, button: string): string {
  return `<form method="post" action="${escapeHtml(action)}">${inputs}
<button type="submit">${button}</button>
</form>`
}

/** Why a page of the login is shown, other than to ask for the password. */
export type LoginMessage = 'wrong' | 'wait' | 'busy' | 'foreign' | 'cleartext' | 'ended' | 'unsent' | 'out'

/** The words of the login page in one language. */
type Words = Readonly<Record<'password' | 'login' | 'logout' | 'open' | LoginMessage, string>>

/** By language. A new one needs only its lines here. */
export const WORDS: Readonly<Record<string, Words>> & { readonly en: Words } = {
  en: {
    password: 'Password',
    login: 'Log in',
    logout: 'Log out',
    open: 'Open the device',
    wrong: 'Wrong password.',
    wait: 'Too many attempts. Wait a minute and try again.',
    busy: 'The login did not work. Try again.',
    foreign: 'The request came from another site, so it was not carried out.',
    cleartext: 'This connection is not encrypted, so there is no login. Use an address with https.',
    ended: 'The session has ended, or the password has changed. Log in again.',
    unsent: 'Your input was not sent, because you are not logged in. Log in, then enter it again.',
    out: 'You are logged out.',
  },
  de: {
    password: 'Passwort',
    login: 'Anmelden',
    logout: 'Abmelden',
    open: 'Gerät öffnen',
    wrong: 'Falsches Passwort.',
    wait: 'Zu viele Versuche. Warten Sie eine Minute und versuchen Sie es erneut.',
    busy: 'Die Anmeldung ist fehlgeschlagen. Versuchen Sie es erneut.',
    foreign: 'Die Anfrage kam von einer anderen Website und wurde deshalb nicht ausgeführt.',
    cleartext:
      'Diese Verbindung ist nicht verschlüsselt, deshalb ist keine Anmeldung möglich. Verwenden Sie eine Adresse mit https.',
    ended: 'Die Sitzung ist beendet, oder das Passwort wurde geändert. Melden Sie sich erneut an.',
    unsent:
      'Ihre Eingabe wurde nicht gesendet, weil Sie nicht angemeldet sind. Melden Sie sich an und geben Sie sie noch einmal ein.',
    out: 'Sie sind abgemeldet.',
  },
  fr: {
    password: 'Mot de passe',
    login: 'Se connecter',
    logout: 'Se déconnecter',
    open: 'Ouvrir l’appareil',
    wrong: 'Mot de passe incorrect.',
    wait: 'Trop de tentatives. Attendez une minute, puis réessayez.',
    busy: 'La connexion a échoué. Réessayez.',
    foreign: 'La demande venait d’un autre site et n’a donc pas été exécutée.',
    cleartext:
      'Cette liaison n’est pas chiffrée : la connexion est impossible. Utilisez une adresse en https.',
    ended: 'La session est terminée ou le mot de passe a changé. Reconnectez-vous.',
    unsent:
      'Votre saisie n’a pas été envoyée, car aucune session n’est ouverte. Connectez-vous, puis saisissez-la à nouveau.',
    out: 'Déconnexion effectuée.',
  },
  es: {
    password: 'Contraseña',
    login: 'Iniciar sesión',
    logout: 'Cerrar sesión',
    open: 'Abrir el dispositivo',
    wrong: 'Contraseña incorrecta.',
    wait: 'Demasiados intentos. Espere un minuto y vuelva a intentarlo.',
    busy: 'No se pudo iniciar sesión. Vuelva a intentarlo.',
    foreign: 'La solicitud procede de otro sitio, por lo que no se ejecutó.',
    cleartext:
      'Esta conexión no está cifrada, por lo que no se puede iniciar sesión. Utilice una dirección con https.',
    ended: 'La sesión ha terminado o la contraseña ha cambiado. Inicie sesión de nuevo.',
    unsent:
      'Sus datos no se enviaron porque no hay ninguna sesión abierta. Inicie sesión y vuelva a introducirlos.',
    out: 'Ha cerrado la sesión.',
  },
  it: {
    password: 'Password',
    login: 'Accedi',
    logout: 'Esci',
    open: 'Apri il dispositivo',
    wrong: 'Password errata.',
    wait: 'Troppi tentativi. Attendere un minuto e riprovare.',
    busy: 'Accesso non riuscito. Riprovare.',
    foreign: 'La richiesta proviene da un altro sito, quindi non è stata eseguita.',
    cleartext: 'Questa connessione non è cifrata, quindi non è possibile accedere. Usare un indirizzo https.',
    ended: 'La sessione è terminata o la password è cambiata. Accedere di nuovo.',
    unsent:
      'I dati inseriti non sono stati inviati perché non è attiva alcuna sessione. Accedere e inserirli di nuovo.',
    out: 'Disconnessione effettuata.',
  },
  zh: {
    password: '密码',
    login: '登录',
    logout: '退出登录',
    open: '打开设备',
    wrong: '密码错误。',
    wait: '尝试次数过多。请等待一分钟后重试。',
    busy: '登录失败，请重试。',
    foreign: '该请求来自其他网站，因此未执行。',
    cleartext: '此连接未加密，无法登录。请使用 https 地址。',
    ended: '会话已结束，或密码已更改。请重新登录。',
    unsent: '您尚未登录，输入的内容没有发送。请登录后重新输入。',
    out: '您已退出登录。',
  },
  ja: {
    password: 'パスワード',
    login: 'ログイン',
    logout: 'ログアウト',
    open: '機器を開く',
    wrong: 'パスワードが違います。',
    wait: '試行回数が多すぎます。1分待ってからもう一度お試しください。',
    busy: 'ログインできませんでした。もう一度お試しください。',
    foreign: '別のサイトからの要求のため、実行しませんでした。',
    cleartext: 'この接続は暗号化されていないため、ログインできません。https のアドレスを使用してください。',
    ended: 'セッションが終了したか、パスワードが変更されました。もう一度ログインしてください。',
    unsent:
      'ログインしていないため、入力内容は送信されませんでした。ログインしてから、もう一度入力してください。',
    out: 'ログアウトしました。',
  },
}
