/** What a page says about a refusal. Kinds of refusals share a message if a person can do the same about them. */
export type RefusalMessage =
  | 'limited'
  | 'down'
  | 'failed'
  | 'busy'
  | 'fault'
  | 'token'
  | 'denied'
  | 'foreign'
  | 'large'
  | 'invalid'

/** What happened, and what a person can do. */
type Told = readonly [title: string, advice: string]

/**
 * `again`, `open`: links. `soon`: precedes the seconds after which the page loads again. `unsent`, `unsure`: what became of the input of a
 * request that is not a read. `id`: precedes the request id.
 */
type Words = Readonly<
  Record<RefusalMessage, Told> & Record<'again' | 'open' | 'soon' | 'unsent' | 'unsure' | 'id', string>
>

/** By language: the languages of the login page. A new language needs only its lines here. */
export const WORDS: Readonly<Record<string, Words>> & { readonly en: Words } = {
  en: {
    limited: [
      'Too many requests',
      'The number of requests for this time is used up. Wait a moment, then try again.',
    ],
    down: [
      'The device cannot be reached',
      'It may be switched off or starting. If it stays like this, check the device and its network.',
    ],
    failed: ['The device gave no usable response', 'Try again. If it happens again, check the device.'],
    busy: ['The device is busy', 'Too many requests wait at the moment. Wait a moment, then try again.'],
    fault: ['The request failed', 'Try again. If it happens again, give the request id to the operator.'],
    token: [
      'A login is needed',
      'This address is for programs that log in with a token. A browser has no login here: ask the operator.',
    ],
    denied: [
      'Access denied',
      'The request is not allowed from here or with this login. If you need it, ask the operator.',
    ],
    foreign: ['Access denied', 'The request came from another site, so it was not carried out.'],
    large: ['Too large', 'What you sent is larger than the device may get. Send a smaller file.'],
    invalid: [
      'The request is not valid',
      'Check the address. If a link or a form led here, give the request id to the operator.',
    ],
    again: 'Try again',
    open: 'Open the first page',
    soon: 'This page tries again by itself. Seconds to wait:',
    unsent: 'Your input was not carried out. Go back and send it again later.',
    unsure: 'Your input may have been carried out or not. Check before you send it again.',
    id: 'Request id:',
  },
  de: {
    limited: [
      'Zu viele Anfragen',
      'Die Zahl der Anfragen für diese Zeit ist verbraucht. Warten Sie einen Moment und versuchen Sie es erneut.',
    ],
    down: [
      'Das Gerät ist nicht erreichbar',
      'Vielleicht ist es ausgeschaltet oder startet gerade. Wenn es so bleibt, prüfen Sie das Gerät und sein Netz.',
    ],
    failed: [
      'Das Gerät hat nicht brauchbar geantwortet',
      'Versuchen Sie es erneut. Wenn es wieder geschieht, prüfen Sie das Gerät.',
    ],
    busy: [
      'Das Gerät ist ausgelastet',
      'Im Moment warten zu viele Anfragen. Warten Sie einen Moment und versuchen Sie es erneut.',
    ],
    fault: [
      'Die Anfrage ist fehlgeschlagen',
      'Versuchen Sie es erneut. Wenn es wieder geschieht, nennen Sie dem Betreiber die Anfrage-Nummer.',
    ],
    token: [
      'Eine Anmeldung ist nötig',
      'Diese Adresse ist für Programme, die sich mit einem Token anmelden. Für Browser gibt es hier keine Anmeldung: Fragen Sie den Betreiber.',
    ],
    denied: [
      'Zugriff verweigert',
      'Die Anfrage ist von hier oder mit dieser Anmeldung nicht erlaubt. Wenn Sie sie brauchen, fragen Sie den Betreiber.',
    ],
    foreign: [
      'Zugriff verweigert',
      'Die Anfrage kam von einer anderen Website und wurde deshalb nicht ausgeführt.',
    ],
    large: [
      'Zu groß',
      'Was Sie gesendet haben, ist größer, als das Gerät annehmen darf. Senden Sie eine kleinere Datei.',
    ],
    invalid: [
      'Die Anfrage ist ungültig',
      'Prüfen Sie die Adresse. Wenn ein Link oder ein Formular hierher geführt hat, nennen Sie dem Betreiber die Anfrage-Nummer.',
    ],
    again: 'Erneut versuchen',
    open: 'Erste Seite öffnen',
    soon: 'Diese Seite versucht es von selbst erneut. Wartezeit in Sekunden:',
    unsent: 'Ihre Eingabe wurde nicht ausgeführt. Gehen Sie zurück und senden Sie sie später noch einmal.',
    unsure:
      'Ihre Eingabe wurde vielleicht ausgeführt, vielleicht nicht. Prüfen Sie das, bevor Sie sie noch einmal senden.',
    id: 'Anfrage-Nummer:',
  },
  fr: {
    limited: [
      'Trop de demandes',
      'Le nombre de demandes pour cette période est épuisé. Attendez un instant, puis réessayez.',
    ],
    down: [
      'L’appareil est injoignable',
      'Il est peut-être éteint ou en cours de démarrage. Si cela dure, vérifiez l’appareil et son réseau.',
    ],
    failed: [
      'L’appareil n’a pas donné de réponse utilisable',
      'Réessayez. Si cela se reproduit, vérifiez l’appareil.',
    ],
    busy: ['L’appareil est occupé', 'Trop de demandes sont en attente. Attendez un instant, puis réessayez.'],
    fault: [
      'La demande a échoué',
      'Réessayez. Si cela se reproduit, communiquez le numéro de la demande à l’exploitant.',
    ],
    token: [
      'Une connexion est nécessaire',
      'Cette adresse est destinée aux programmes qui se connectent avec un jeton. Un navigateur ne peut pas s’y connecter : adressez-vous à l’exploitant.',
    ],
    denied: [
      'Accès refusé',
      'La demande n’est pas autorisée d’ici ou avec cette connexion. Si vous en avez besoin, adressez-vous à l’exploitant.',
    ],
    foreign: ['Accès refusé', 'La demande venait d’un autre site et n’a donc pas été exécutée.'],
    large: [
      'Trop volumineux',
      'Votre envoi dépasse la taille que l’appareil peut recevoir. Envoyez un fichier plus petit.',
    ],
    invalid: [
      'La demande n’est pas valide',
      'Vérifiez l’adresse. Si un lien ou un formulaire vous a mené ici, communiquez le numéro de la demande à l’exploitant.',
    ],
    again: 'Réessayer',
    open: 'Ouvrir la première page',
    soon: 'Cette page réessaie d’elle-même. Secondes à attendre :',
    unsent: 'Votre saisie n’a pas été exécutée. Revenez en arrière et envoyez-la à nouveau plus tard.',
    unsure: 'Il n’est pas certain que votre saisie ait été exécutée. Vérifiez avant de l’envoyer à nouveau.',
    id: 'Numéro de la demande :',
  },
  es: {
    limited: [
      'Demasiadas solicitudes',
      'Se ha agotado el número de solicitudes para este periodo. Espere un momento y vuelva a intentarlo.',
    ],
    down: [
      'No se puede acceder al dispositivo',
      'Puede estar apagado o arrancando. Si sigue así, compruebe el dispositivo y su red.',
    ],
    failed: [
      'El dispositivo no dio una respuesta utilizable',
      'Vuelva a intentarlo. Si ocurre de nuevo, compruebe el dispositivo.',
    ],
    busy: [
      'El dispositivo está ocupado',
      'Hay demasiadas solicitudes en espera. Espere un momento y vuelva a intentarlo.',
    ],
    fault: [
      'La solicitud ha fallado',
      'Vuelva a intentarlo. Si ocurre de nuevo, indique al operador el número de la solicitud.',
    ],
    token: [
      'Es necesario iniciar sesión',
      'Esta dirección es para programas que se identifican con un token. Un navegador no puede iniciar sesión aquí: consulte al operador.',
    ],
    denied: [
      'Acceso denegado',
      'La solicitud no está permitida desde aquí o con esta sesión. Si la necesita, consulte al operador.',
    ],
    foreign: ['Acceso denegado', 'La solicitud procede de otro sitio, por lo que no se ejecutó.'],
    large: [
      'Demasiado grande',
      'Lo que envió es mayor de lo que el dispositivo puede recibir. Envíe un archivo más pequeño.',
    ],
    invalid: [
      'La solicitud no es válida',
      'Compruebe la dirección. Si un enlace o un formulario le ha traído aquí, indique al operador el número de la solicitud.',
    ],
    again: 'Volver a intentarlo',
    open: 'Abrir la primera página',
    soon: 'Esta página lo vuelve a intentar por sí sola. Segundos de espera:',
    unsent: 'Sus datos no se procesaron. Vuelva atrás y envíelos de nuevo más tarde.',
    unsure: 'No se sabe si sus datos se procesaron. Compruébelo antes de enviarlos de nuevo.',
    id: 'Número de la solicitud:',
  },
  it: {
    limited: [
      'Troppe richieste',
      'Il numero di richieste per questo periodo è esaurito. Attendere un momento e riprovare.',
    ],
    down: [
      'Il dispositivo non è raggiungibile',
      'Potrebbe essere spento o in fase di avvio. Se la situazione non cambia, controllare il dispositivo e la sua rete.',
    ],
    failed: [
      'Il dispositivo non ha dato una risposta utilizzabile',
      'Riprovare. Se succede di nuovo, controllare il dispositivo.',
    ],
    busy: [
      'Il dispositivo è occupato',
      'Ci sono troppe richieste in attesa. Attendere un momento e riprovare.',
    ],
    fault: [
      'La richiesta non è riuscita',
      'Riprovare. Se succede di nuovo, comunicare al gestore il numero della richiesta.',
    ],
    token: [
      'È necessario accedere',
      'Questo indirizzo è per programmi che accedono con un token. Un browser non può accedere qui: rivolgersi al gestore.',
    ],
    denied: [
      'Accesso negato',
      'La richiesta non è consentita da qui o con questo accesso. Se è necessaria, rivolgersi al gestore.',
    ],
    foreign: ['Accesso negato', 'La richiesta proviene da un altro sito, quindi non è stata eseguita.'],
    large: [
      'Troppo grande',
      'I dati inviati superano la dimensione che il dispositivo può ricevere. Inviare un file più piccolo.',
    ],
    invalid: [
      'La richiesta non è valida',
      'Controllare l’indirizzo. Se un collegamento o un modulo ha portato qui, comunicare al gestore il numero della richiesta.',
    ],
    again: 'Riprova',
    open: 'Apri la prima pagina',
    soon: 'Questa pagina riprova da sola. Secondi di attesa:',
    unsent: 'I dati inseriti non sono stati elaborati. Tornare indietro e inviarli di nuovo più tardi.',
    unsure: 'Non è certo che i dati inseriti siano stati elaborati. Controllare prima di inviarli di nuovo.',
    id: 'Numero della richiesta:',
  },
  zh: {
    limited: ['请求过多', '这段时间内的请求次数已用完。请稍候再试。'],
    down: ['无法连接设备', '设备可能已关闭或正在启动。如果一直如此，请检查设备及其网络。'],
    failed: ['设备没有给出可用的响应', '请重试。如果再次发生，请检查设备。'],
    busy: ['设备繁忙', '目前等待的请求过多。请稍候再试。'],
    fault: ['请求失败', '请重试。如果再次发生，请将请求编号告知管理员。'],
    token: ['需要登录', '此地址供使用令牌登录的程序使用，浏览器无法在此登录。请联系管理员。'],
    denied: ['访问被拒绝', '不允许从此处或以此登录身份发出该请求。如有需要，请联系管理员。'],
    foreign: ['访问被拒绝', '该请求来自其他网站，因此未执行。'],
    large: ['内容过大', '您发送的内容超过设备可接收的大小。请发送较小的文件。'],
    invalid: ['请求无效', '请检查地址。如果是链接或表单将您带到此处，请将请求编号告知管理员。'],
    again: '重试',
    open: '打开首页',
    soon: '此页面会自动重试。等待秒数：',
    unsent: '您输入的内容没有执行。请返回，稍后重新发送。',
    unsure: '您输入的内容可能已执行，也可能未执行。重新发送之前请先确认。',
    id: '请求编号：',
  },
  ja: {
    limited: [
      '要求が多すぎます',
      'この時間に許される要求の数を使い切りました。しばらく待ってからもう一度お試しください。',
    ],
    down: [
      '機器に接続できません',
      '電源が切れているか、起動中の可能性があります。続く場合は、機器とネットワークを確認してください。',
    ],
    failed: [
      '機器から正しい応答がありません',
      'もう一度お試しください。繰り返す場合は、機器を確認してください。',
    ],
    busy: [
      '機器が混み合っています',
      '待っている要求が多すぎます。しばらく待ってからもう一度お試しください。',
    ],
    fault: [
      '要求を処理できませんでした',
      'もう一度お試しください。繰り返す場合は、要求番号を管理者に伝えてください。',
    ],
    token: [
      'ログインが必要です',
      'このアドレスは、トークンでログインするプログラム用です。ブラウザからはログインできません。管理者に問い合わせてください。',
    ],
    denied: [
      'アクセスできません',
      'この要求は、ここから、またはこのログインでは許可されていません。必要な場合は、管理者に問い合わせてください。',
    ],
    foreign: ['アクセスできません', '別のサイトからの要求のため、実行しませんでした。'],
    large: [
      '大きすぎます',
      '送信した内容は、機器が受け取れる大きさを超えています。小さいファイルを送信してください。',
    ],
    invalid: [
      '要求が正しくありません',
      'アドレスを確認してください。リンクやフォームからここに来た場合は、要求番号を管理者に伝えてください。',
    ],
    again: 'もう一度試す',
    open: '最初のページを開く',
    soon: 'このページは自動的に再試行します。待ち時間（秒）：',
    unsent: '入力内容は実行されませんでした。前のページに戻り、後でもう一度送信してください。',
    unsure: '入力内容が実行されたかどうかわかりません。もう一度送信する前に確認してください。',
    id: '要求番号：',
  },
}
