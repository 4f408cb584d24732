import random, json
def canal(n, seed=1):
    r=random.Random(seed); out=[]
    for i in range(n):
        k=i%3
        row={"id":str(i),"customer_id":str(r.randrange(10**6)),"status":r.choice(["new","paid","sent"]),"amount":f"{r.randrange(10**6)/100:.2f}","note":"note for order number %d"%i,"created_at":"2024-03-01 12:%02d:%02d"%(r.randrange(60),r.randrange(60)),"weight":f"{r.random()*10:.3f}"}
        m={"data":[row],"database":"shop","es":1700000000000+i,"id":i+1,"isDdl":False,"mysqlType":{"id":"bigint(20)","customer_id":"int(11)","status":"varchar(16)","amount":"decimal(12,2)","note":"varchar(255)","created_at":"datetime","weight":"double"},"old":None,"pkNames":["id"],"sql":"","sqlType":{"id":-5,"customer_id":4,"status":12,"amount":3,"note":12,"created_at":93,"weight":8},"table":"orders","ts":1700000000500+i,"type":["INSERT","UPDATE","DELETE"][k]}
        if k==1: m["old"]=[{"status":"new","amount":"1.00"}]
        out.append(json.dumps(m,separators=(",",":")).encode())
    return out
